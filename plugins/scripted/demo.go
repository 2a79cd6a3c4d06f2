package main

// demo is the script without a configuration: two rounds an iteration, the
// first asks for a tool and the second answers.
const demo = `{
  "repeat": true,
  "steps": [
    {
      "delay_ms": 150,
      "chunks": 6,
      "text": "Let me count the words of a sentence. ",
      "tool_calls": [
        {"name": "count_words", "arguments": {"text": "Every step of a bounded loop is on disk before the next one begins."}}
      ]
    },
    {
      "delay_ms": 150,
      "chunks": 12,
      "text": "The tool has counted, and its result is part of this session's log. This answer has no tool calls, so the iteration is complete."
    }
  ]
}`
