"""The far end of the xiaozhi protocol, in the manner of the vanling server.

message -> ProtocolTranslator -> frame -> input filters -> Session -> output -> output filters ->
ProtocolTranslator -> message. `connection.serve` puts these together for one WebSocket; `pairing`
answers over HTTP. Sections named here are those of xiaozhi-ws.md.
"""
