"""Colours, columns and type sizes of the picture. Data only."""

WIDTH = 1060
HEADER = 106
MARGIN = 14

LABEL = 12
SMALL = 10.5
ROW = 21

AXIS = 46
PERSON = (56, 158)
SPEAKER = (166, 256)
MICROPHONE = (264, 340)
WINDOW = (354, 362)
STATE = (364, 462)
WORDS = (472, 804)
UP = (808, 884)
LINK = (889, 895)
DOWN = (900, 976)
CLOUD = 1000
CLOCK = 1052

HEADINGS = (
    (PERSON[0], PERSON[1], "Person", "buttons, display"),
    (SPEAKER[0], SPEAKER[1], "Speaker", "heard"),
    (MICROPHONE[0], MICROPHONE[1], "Microphone", "voice"),
    (WINDOW[0] - 6, STATE[1], "Device Session", "input · state"),
    (UP[0], DOWN[1], "WebSocket", ""),
    (UP[0], UP[1], "", "audio up"),
    (DOWN[0], DOWN[1], "", "audio down"),
    (CLOUD - 20, CLOUD + 20, "Cloud", ""),
)

# State -> fill, ink.
STATES = {
    "IDLE": ("#e5e7eb", "#374151"),
    "LISTENING": ("#bbf7d0", "#14532d"),
    "THINKING": ("#fde68a", "#713f12"),
    "SPEAKING": ("#bfdbfe", "#1e3a8a"),
    "ERROR": ("#fca5a5", "#7f1d1d"),
}
OTHER_STATE = ("#f3f4f6", "#374151")

SHEET = """
text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", Arial,
  sans-serif; font-size: 12px; fill: #1f2937; }
.title { font-size: 17px; font-weight: 600; }
.heading { font-weight: 600; text-anchor: middle; }
.small, .clock, .note, .tick, .sub { font-size: 10.5px; }
.sub, .clock, .tick { fill: #6b7280; }
.sub, .middle { text-anchor: middle; }
.halo { paint-order: stroke; stroke: #fff; stroke-width: 3px; stroke-linejoin: round; }
.clock, .tick { text-anchor: end; }
.note { fill: #6b7280; font-style: italic; text-anchor: middle; }
.kind { font-weight: 600; }
.up .kind { fill: #0f766e; } .down .kind { fill: #4338ca; }
.up line { stroke: #0f766e; } .down line { stroke: #4338ca; }
.up path { fill: #0f766e; } .down path { fill: #4338ca; }
.bad text, .bad .kind { fill: #b91c1c; }
.bad line { stroke: #b91c1c; } .bad path { fill: #b91c1c; }
.arrow line { stroke-width: 1.3; }
.plain line { stroke-dasharray: 5 3; }
.lifeline { stroke: #d1d5db; }
.axis { stroke: #9ca3af; }
.window { fill: #22c55e; }
.voice { fill: #99f6e4; stroke: #0f766e; } .edge { stroke: #0f766e; stroke-width: 2; }
.sent { fill: #ccfbf1; stroke: #0f766e; }
.accepted { fill: #e0e7ff; stroke: #4338ca; }
.refused { fill: url(#refused); stroke: #b91c1c; stroke-dasharray: 3 2; }
.heard { fill: #c7d2fe; stroke: #4338ca; }
.link { fill: #9ca3af; } .connecting { fill: none; stroke: #9ca3af; stroke-dasharray: 2 2; }
.press rect { fill: #fff; stroke: #6b7280; } .press line { stroke: #6b7280; }
.press path { fill: #6b7280; }
.interrupts rect { fill: #ffedd5; stroke: #c2410c; } .interrupts line { stroke: #c2410c; }
.interrupts path { fill: #c2410c; } .interrupts text { fill: #9a3412; font-weight: 600; }
.cut { stroke: #c2410c; stroke-width: 1.5; }
.silent { fill: #9a3412; font-weight: 600; }
.hold { fill: #9ca3af; }
.gap { fill: #fff; } .torn { fill: none; stroke: #9ca3af; }
"""
