"""The set-up page as HTML: no outside resources, no stored secret, usable without its script.

`form(...)` is the page, `done(...)` what follows, `words_for(...)` chooses the language.
"""

from parley import settings as table
from parley.portal.form import KEEP, OTHER, shown_url
from parley.portal.words import EN, ZH

_STYLE = """
:root{color-scheme:light dark;--bg:#f3f5f4;--card:#fff;--ink:#17211e;--soft:#5b6a65;--line:#d5dcd9;
--main:#0b6e5b;--on:#fff;--bad:#b3261e;--tint:#e3f1ed}
@media(prefers-color-scheme:dark){:root{--bg:#101513;--card:#1a211e;--ink:#e8eeec;--soft:#9aaaa4;
--line:#35403c;--main:#5fc9b0;--on:#06231c;--bad:#ff8a80;--tint:#1d332d}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:17px/1.45 system-ui,-apple-system,
"PingFang SC","Noto Sans CJK SC",sans-serif;-webkit-text-size-adjust:100%}
main{max-width:520px;margin:0 auto;padding:16px 16px 32px}
header{display:flex;align-items:center;justify-content:space-between;min-height:44px}
h1{font-size:26px;margin:8px 0 4px}h2{font-size:19px;margin:0 0 10px}
p{margin:0 0 12px}.soft{color:var(--soft);font-size:15px}
section{background:var(--card);border:1px solid var(--line);border-radius:14px;padding:16px;
margin:16px 0}
label{display:block;font-weight:600;margin:14px 0 6px}
input[type=text],input[type=password],input[type=url],select{width:100%;min-height:48px;
padding:10px 12px;font:inherit;color:inherit;background:var(--bg);border:1px solid var(--line);
border-radius:10px}
.net{display:flex;align-items:center;gap:12px;min-height:52px;margin:0;padding:6px 4px;
font-weight:500;border-top:1px solid var(--line)}
.net:first-of-type{border-top:0}
.net span{flex:1;min-width:0;overflow-wrap:anywhere}.net small{color:var(--soft);font-size:14px;
white-space:nowrap}
input[type=radio],input[type=checkbox]{width:24px;height:24px;margin:0;flex:none;
accent-color:var(--main)}
svg{width:22px;height:18px;flex:none;fill:var(--main)}svg .off{fill:var(--line)}
.row{display:flex;gap:8px}.row input{flex:1;min-width:0}
.row+.soft,input+.soft{margin-top:6px}
.check{display:flex;align-items:center;gap:12px;min-height:48px;font-weight:500;margin:8px 0 0}
button,.button{display:block;width:100%;min-height:54px;border:0;border-radius:12px;font:inherit;
font-weight:700;background:var(--main);color:var(--on);text-align:center;text-decoration:none}
.plain{display:flex;align-items:center;justify-content:center;width:auto;min-height:48px;
padding:0 16px;background:var(--tint);color:var(--main);border-radius:10px}
.link{display:inline-flex;align-items:center;min-height:44px;color:var(--main);font-weight:600;
text-decoration:none}
.bad{color:var(--bad);font-weight:600;font-size:15px;margin:6px 0 0;overflow-wrap:anywhere}
:focus-visible{outline:3px solid var(--main);outline-offset:2px}
"""

_SCRIPT = """
var p=document.getElementById('password'),s=document.getElementById('show'),
o=document.getElementById('ssid');
s.hidden=false;s.onclick=function(){p.type=p.type=='text'?'password':'text'};
o.oninput=function(){document.getElementById('other').checked=true};
document.querySelector('form').onsubmit=function(){document.getElementById('save').disabled=true};
"""

_BARS = ((0, 12), (6, 8), (12, 4), (18, 0))  # x and y of each in the picture of the strength
_LEVELS = (-85, -75, -65, -55)  # dBm that light them up


def words_for(query, accepted, language):
    """The person's choice, else the browser's (Accept-Language), else the device's language."""
    for text in (query, accepted, language):
        for part in text.replace("&", ",").split(","):
            part = part.strip().lower()
            if part.startswith("lang="):
                part = part[5:]
            if part.startswith("zh"):
                return ZH
            if part.startswith("en"):
                return EN
    return EN


def headers(nonce):
    """What the browser must know of a page of ours."""
    policy = (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'nonce-%s'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    return (
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Security-Policy", policy % nonce),
        ("Referrer-Policy", "same-origin"),
    )


def form(words, nonce, csrf, settings, heard, problems, fields):
    """The page. `heard`: (ssid, rssi, open) by strength; `fields`: what the person has sent."""
    parts = [_head(words)]
    other = "zh" if words is EN else "en"
    parts.append('<header><b>parley</b><a class="link" href="/?lang=%s">' % other)
    parts.append("中文" if words is EN else "English")
    parts.append("</a></header><h1>%s</h1><p class=soft>%s</p>" % (words["title"], words["intro"]))
    if problems:
        parts.append("<p class=bad role=alert>%s</p>" % words["check"])
    parts.append('<form method=post action="/save" autocomplete=off>')
    parts.append('<input type=hidden name=csrf value="%s">' % csrf)
    parts.append('<input type=hidden name=lang value="%s">' % words["tag"])
    parts.append("<section><h2>%s</h2>" % words["wifi"])
    _networks(parts, words, settings, heard, fields)
    parts.append(
        '<a class="link" href="/?scan&amp;lang=%s">%s</a>' % (words["tag"], words["again"])
    )
    parts.append("<p class=soft>%s</p>" % words["only24"])
    _problem(parts, words, problems, "network")
    parts.append(
        "<label for=password>%s</label><div class=row><input type=password id=password "
        'name=password maxlength=64 autocapitalize=none spellcheck=false autocomplete="off">'
        "<button type=button class=plain id=show hidden>%s</button></div>"
        % (words["password"], words["show"])
    )
    _problem(parts, words, problems, "password")
    parts.append("<p class=soft>%s</p>" % words["password_hint"])
    for network in settings.networks:
        name = _escape(network["ssid"])
        parts.append(
            '<label class=check><input type=checkbox name=forget value="%s">%s: %s</label>'
            % (name, words["forget"], name)
        )
    parts.append("</section><section><h2>%s</h2>" % words["server"])
    parts.append(
        "<label for=url>%s</label><input type=url id=url name=url%s maxlength=512 "
        'placeholder="wss://" pattern="wss?://.+" autocapitalize=none spellcheck=false '
        'value="%s">'
        % (
            words["url"],
            "" if settings.ota_url else " required",  # a pairing server names it
            _escape(_value(fields, "url", shown_url(settings))),
        )
    )
    _problem(parts, words, problems, "url")
    hint = words["token_kept" if settings.token else "token_hint"]
    parts.append(
        "<label for=token>%s</label><input type=password id=token name=token maxlength=2048 "
        "autocapitalize=none spellcheck=false autocomplete=off><p class=soft>%s</p>"
        % (words["token"], hint)
    )
    _problem(parts, words, problems, "token")
    if settings.token:
        parts.append(
            "<label class=check><input type=checkbox name=token_none value=1>%s</label>"
            % words["token_none"]
        )
    _choice(parts, words, settings, fields, "protocol", {})
    _choice(parts, words, settings, fields, "language", {"en-US": "English", "zh-CN": "中文"})
    parts.append("</section><button id=save>%s</button></form>" % words["save"])
    parts.append('<script nonce="%s">%s</script>' % (nonce, _SCRIPT))
    parts.append("</main></body></html>")
    return "".join(parts)


def done(words, ssid):
    """What is shown after the settings were stored; `ssid`: the network that was chosen."""
    parts = [_head(words), "<h1>%s</h1><section>" % words["done"]]
    if ssid:
        parts.append("<p>%s <b>%s</b>.</p>" % (words["done_network"], _escape(ssid)))
    else:
        parts.append("<p>%s</p>" % words["done_keep"])
    parts.append("<p>%s</p></section></main></body></html>" % words["done_next"])
    return "".join(parts)


def message(words, text):
    """A page of one sentence, with a way back."""
    return "%s<h1>parley</h1><p>%s</p><a class=button href='/'>%s</a></main></body></html>" % (
        _head(words),
        text,
        words["title"],
    )


def _head(words):
    return (
        '<!DOCTYPE html><html lang="%s"><head><meta charset=utf-8><title>%s</title>'
        '<meta name=viewport content="width=device-width,initial-scale=1">'
        '<link rel=icon href="data:,"><style>%s</style></head><body><main>'
        % (words["tag"], words["title"], _STYLE)
    )


def _networks(parts, words, settings, heard, fields):
    known = [network["ssid"] for network in settings.networks]
    choice = _value(fields, "network", KEEP if known or not heard else None)
    if known:
        text = "%s (%s)" % (words["keep"], ", ".join(known))
        _radio(parts, KEEP, text, "", choice, "")
    for ssid, rssi, is_open in heard:
        note = words["stored"] if ssid in known else words["open" if is_open else "locked"]
        _radio(parts, ssid, ssid, note, choice, _strength(rssi))
    if not heard:
        parts.append("<p>%s</p>" % words["none_heard"])
        choice = choice or (KEEP if known else OTHER)
    _radio(parts, OTHER, words["other"], "", choice, "", " id=other")
    parts.append(
        '<input type=text id=ssid name=ssid maxlength=32 aria-label="%s" placeholder="%s" '
        'autocapitalize=none spellcheck=false value="%s">'
        % (words["ssid"], words["ssid"], _escape(_value(fields, "ssid", "")))
    )


def _radio(parts, value, text, note, choice, picture, attribute=""):
    checked = " checked" if value == choice else ""
    parts.append(
        '<label class=net><input type=radio name=network value="%s"%s%s><span>%s</span>'
        "<small>%s</small>%s</label>"
        % (_escape(value), attribute, checked, _escape(text), note, picture)
    )


def _strength(rssi):
    bars = []
    for (x, y), level in zip(_BARS, _LEVELS):  # noqa: B905  MicroPython's zip has no `strict`
        shade = "" if rssi >= level else " class=off"
        bars.append("<rect%s x=%d y=%d width=4 height=%d rx=1 />" % (shade, x, y, 16 - y))
    return '<svg viewBox="0 0 22 16" role=img aria-label="%d dBm">%s</svg>' % (rssi, "".join(bars))


def _choice(parts, words, settings, fields, name, shown):
    current = _value(fields, name, getattr(settings, name))
    parts.append(
        "<label for=%s>%s</label><select id=%s name=%s>" % (name, words[name], name, name)
    )
    for value in table.TABLE[name].limits:
        selected = " selected" if value == current else ""
        parts.append("<option value=%s%s>%s</option>" % (value, selected, shown.get(value, value)))
    parts.append("</select>")


def _problem(parts, words, problems, name):
    if name in problems:
        word, detail = problems[name]
        text = words[word] + (": " + detail if detail else "")
        parts.append("<p class=bad>%s</p>" % _escape(text))


def _value(fields, name, default):
    return fields[name][-1] if name in fields else default


def _escape(text):
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").replace("'", "&#39;").replace("\n", "&#10;")
