"""The wire dialects: pure functions between text frames and events or intents."""
