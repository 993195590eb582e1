/** The elements that one part of the page finds by their names in another. */

import type { EmojiPicker } from "./actions/emoji-picker.js";
import type { DeleteDialog, RevisionsDialog } from "./actions/message-dialogs.js";
import type { MessageMenu } from "./actions/message-menu.js";
import type { UndoBar } from "./actions/undo-bar.js";
import type { CallDialog } from "./calls/call-dialog.js";
import type { ProfileCard } from "./person/profile-card.js";
import type { ChatMenu } from "./panels/chat-menu.js";
import type { ChatView } from "./chat-view.js";
import type { ChatSettingsDialog } from "./dialogs/chat-settings-dialog.js";
import type { LinksDialog } from "./dialogs/links-dialog.js";
import type { MemberDialog } from "./dialogs/member-dialog.js";
import type { MessageConsole } from "./dialogs/message-console.js";
import type { NewChatDialog } from "./dialogs/new-chat-dialog.js";
import type { PayerDialog } from "./dialogs/payer-dialog.js";
import type { VerifyDialog } from "./dialogs/verify-dialog.js";
import type { ChatMessage } from "./log/message.js";
import type { ChatList } from "./panels/chat-list.js";
import type { MembersPanel } from "./panels/members-panel.js";
import type { ThreadPanel } from "./panels/thread-panel.js";

declare global {
  interface HTMLElementTagNameMap {
    "call-dialog": CallDialog;
    "chat-list": ChatList;
    "chat-message": ChatMessage;
    "chat-settings-dialog": ChatSettingsDialog;
    "chat-view": ChatView;
    "delete-dialog": DeleteDialog;
    "emoji-picker": EmojiPicker;
    "links-dialog": LinksDialog;
    "member-dialog": MemberDialog;
    "members-panel": MembersPanel;
    "message-console": MessageConsole;
    "message-menu": MessageMenu;
    "chat-menu": ChatMenu;
    "undo-bar": UndoBar;
    "new-chat-dialog": NewChatDialog;
    "payer-dialog": PayerDialog;
    "profile-card": ProfileCard;
    "revisions-dialog": RevisionsDialog;
    "thread-panel": ThreadPanel;
    "verify-dialog": VerifyDialog;
  }
}

declare global {
  /** Of the thread of Web Audio, in `calls/agents/capture-worklet.js`. */
  class AudioWorkletProcessor {
    readonly port: MessagePort;
  }
  function registerProcessor(name: string, processor: typeof AudioWorkletProcessor): void;
}
