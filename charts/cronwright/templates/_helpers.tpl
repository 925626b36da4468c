{{- define "cronwright.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "cronwright.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "cronwright.labels" -}}
{{ include "cronwright.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "cronwright.crdMetadata" -}}
labels:
  {{- include "cronwright.labels" . | nindent 2 }}
{{- if .Values.crds.keep }}
annotations:
  helm.sh/resource-policy: keep
{{- end }}
{{- end -}}

{{- define "cronwright.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "cronwright.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- /* Not the namespace's "default": every pod there would be given the operator's rights. */ -}}
{{- required "serviceAccount.name: name the ServiceAccount to use, or let the chart create one with serviceAccount.create=true." .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "cronwright.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "cronwright.topologySpreadConstraints" -}}
{{- $own := dict "matchLabels" (include "cronwright.selectorLabels" . | fromYaml) -}}
{{- range .Values.topologySpreadConstraints }}
{{- $constraint := hasKey . "labelSelector" | ternary . (merge (dict "labelSelector" $own) .) }}
- {{ toYaml $constraint | nindent 2 | trim }}
{{- end }}
{{- end -}}
