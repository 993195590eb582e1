"""Sums of token usage over several inferences (UAMP §8.7)."""

from uamp.types.session import AudioUsage, UsageStats


def added_usage(usage: UsageStats, other: UsageStats) -> UsageStats:
    """Return the sum of two token usages."""

    def total(name: str) -> int | None:
        return (getattr(usage, name) or 0) + (getattr(other, name) or 0) or None

    return UsageStats(
        input_tokens=total("input_tokens"),
        output_tokens=total("output_tokens"),
        total_tokens=total("total_tokens"),
        cached_tokens=total("cached_tokens"),
        cache_write_tokens=total("cache_write_tokens"),
        audio=added_audio(usage.audio, other.audio),
    )


def added_audio(audio: AudioUsage | None, other: AudioUsage | None) -> AudioUsage | None:
    """Return the sum of two audio usages, or None if both are None."""
    if audio is None or other is None:
        return audio or other
    sums = {
        name: (getattr(audio, name) or 0) + (getattr(other, name) or 0) or None
        for name in AudioUsage.__struct_fields__
    }
    return AudioUsage(**sums)
