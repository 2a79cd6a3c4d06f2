package main

import (
	"reflect"

	"github.com/loophost/loophost/pluginapi"
)

// documents are the files and the Go types that they describe.
var documents = map[string]reflect.Type{
	"manifest.json":         reflect.TypeFor[pluginapi.Manifest](),
	"hook-input.json":       reflect.TypeFor[pluginapi.HookInput](),
	"decision.json":         reflect.TypeFor[pluginapi.Decision](),
	"start-doc.json":        reflect.TypeFor[pluginapi.StartDoc](),
	"prompt-doc.json":       reflect.TypeFor[pluginapi.PromptDoc](),
	"round-doc.json":        reflect.TypeFor[pluginapi.RoundDoc](),
	"answer-doc.json":       reflect.TypeFor[pluginapi.AnswerDoc](),
	"tool-call.json":        reflect.TypeFor[pluginapi.ToolCall](),
	"tool-result-doc.json":  reflect.TypeFor[pluginapi.ToolResultDoc](),
	"round-end-doc.json":    reflect.TypeFor[pluginapi.RoundEndDoc](),
	"finalize-doc.json":     reflect.TypeFor[pluginapi.FinalizeDoc](),
	"end-doc.json":          reflect.TypeFor[pluginapi.EndDoc](),
	"notification-doc.json": reflect.TypeFor[pluginapi.NotificationDoc](),
	"provider-request.json": reflect.TypeFor[pluginapi.ProviderRequest](),
	"chunk.json":            reflect.TypeFor[pluginapi.Chunk](),
	"tool-input.json":       reflect.TypeFor[pluginapi.ToolInput](),
	"tool-output.json":      reflect.TypeFor[pluginapi.ToolOutput](),
	"failure.json":          reflect.TypeFor[pluginapi.Failure](),
}
