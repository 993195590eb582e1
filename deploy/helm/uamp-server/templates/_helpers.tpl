{{- define "uamp.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{/* Labels of an object; the argument is a list of the root and the component. */}}
{{- define "uamp.labels" -}}
{{- $root := index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
{{ include "uamp.selector" . }}
{{- end }}

{{- define "uamp.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* Not empty if the cluster decides how many workers of a queue run. */}}
{{- define "uamp.scales" -}}
{{- with .autoscaling }}{{ if .enabled }}yes{{ end }}{{ end -}}
{{- end }}

{{- define "uamp.claim" -}}
{{- .Values.persistence.existingClaim | default (printf "%s-data" (include "uamp.name" .)) -}}
{{- end }}

{{/* What every pod has in common. */}}
{{- define "uamp.pod" -}}
automountServiceAccountToken: false
# Kubernetes would set variables named after Services, such as UAMP_PORT.
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  # Later starts leave the files as they are: the server keeps them private.
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What every container has in common. */}}
{{- define "uamp.container" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
envFrom:
  - secretRef: {name: {{ .Values.existingSecret | quote }}}
env:
  # Named besides, so that a pod does not start without one of them.
  {{- range list "SECRET_KEY" "DATABASE_URL" "REDIS_URL" }}
  - name: {{ . }}
    valueFrom: {secretKeyRef: {name: {{ $.Values.existingSecret | quote }}, key: {{ . }}}}
  {{- end }}
  # Below the volume, whose own folder the cluster opens to its group.
  - {name: DATA_DIR, value: /data/server}
  - {name: HOST, value: 0.0.0.0}
  - {name: PORT, value: "8000"}
  - {name: HTTPS, value: "1"}
  - {name: ALLOWED_HOSTS, value: {{ .Values.host | quote }}}
  - {name: UAMP_ISSUER, value: {{ printf "https://%s" .Values.host | quote }}}
  - {name: UAMP_TRUSTED_PROXIES, value: {{ join "," .Values.trustedProxies | quote }}}
  {{- range $name, $value := .Values.settings }}
  - {name: {{ $name }}, value: {{ $value | quote }}}
  {{- end }}
volumeMounts:
  - {name: data, mountPath: /data}
  - {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "uamp.volumes" -}}
- name: data
  persistentVolumeClaim: {claimName: {{ include "uamp.claim" . | quote }}}
- name: tmp
  emptyDir: {}
{{- end }}
