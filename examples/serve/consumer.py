"""Takes the events of `proto-webhooks serve`: verifies each, handles it once, and answers.

    python3 consumer.py sink.secret [former.secret]

Python 3.9 or newer, and nothing else. It listens at 127.0.0.1:3000 (HOST, PORT) and remembers what was handled in
handled.db (JOURNAL), so only one process may run on that file.
"""

import base64
import hashlib
import hmac
import json
import os
import re
import sqlite3
import sys
import threading
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRETS = sys.argv[1:] or ["sink.secret"]  # read at each request: a rotation needs no restart
MAX_BYTES = 16 * 1024 * 1024  # an event has the seller's body (1 MiB) up to three times, and escaped
REMEMBER_S = 3 * 86_400  # longer than serve may be away


class NeverPossible(Exception):
    """Raised for an event that can never be handled. It is not sent again: serve keeps it as DEAD."""


def handle(event):
    """Yours. When it returns, the event is done. When it raises, the event comes again.

    It may also come again if this process dies between here and the journal. So, if this writes to a database, write
    event["id"] into a unique column in the same transaction: then the event has its effect once.
    """
    data = event["data"]
    print(f"{event['type']} {data['idempotencyKey']!a} {data.get('data')!a}", flush=True)


class Journal:
    """The ids of the events that were handled, on disk. Nobody handles an event while another thread does."""

    def __init__(self, path):
        self.changed = threading.Condition()
        self.running = set()
        self.db = sqlite3.connect(path, check_same_thread=False)
        self.db.executescript(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
            "CREATE TABLE IF NOT EXISTS handled (id TEXT PRIMARY KEY, at INTEGER NOT NULL);"
            "CREATE INDEX IF NOT EXISTS handled_at ON handled (at);"
        )

    def once(self, event_id, work):
        """Calls `work`, unless it has returned for this id before. The id is written only after it has returned."""
        with self.changed:
            if not self.changed.wait_for(lambda: event_id not in self.running, timeout=10):
                raise TimeoutError(f"{event_id} is still being handled")
            if self.db.execute("SELECT 1 FROM handled WHERE id = ?", (event_id,)).fetchone():
                return
            self.running.add(event_id)
        try:
            work()
            with self.changed, self.db:
                self.db.execute("INSERT INTO handled VALUES (?, ?)", (event_id, int(time.time())))
                self.db.execute("DELETE FROM handled WHERE at < ?", (int(time.time()) - REMEMBER_S,))
        finally:
            with self.changed:
                self.running.discard(event_id)
                self.changed.notify_all()


def key_in(path):
    """The key of a file with a secret of Standard Webhooks."""
    with open(path, encoding="ascii") as file:
        text = file.read().strip()
    key = base64.b64decode(text[6:], validate=True)
    if not text.startswith("whsec_") or len(key) < 24:
        raise ValueError(f"{path}: not whsec_ and the base64 of at least 24 bytes")
    return key


def is_authentic(headers, body):
    """True if serve has signed this within the last five minutes, with one of the secrets."""
    event_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not re.fullmatch("[0-9]{1,12}", timestamp) or abs(time.time() - int(timestamp)) > 300:
        return False
    signed = f"{event_id}.{timestamp}.".encode() + body
    digests = [hmac.new(key_in(path), signed, hashlib.sha256).digest() for path in SECRETS]
    expected = [b"v1," + base64.b64encode(digest) for digest in digests]
    given = headers.get("webhook-signature", "").encode().split()[:10]
    return any([hmac.compare_digest(one, other) for one in expected for other in given])


class Door(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections stay open
    timeout = 60  # of one that sends nothing

    def do_POST(self):
        length = self.headers.get("content-length", "")
        if self.path != "/events":
            return self.answer(404, "the path is /events", close=True)
        if not re.fullmatch("[0-9]{1,12}", length):
            return self.answer(411, "no Content-Length", close=True)
        if int(length) > MAX_BYTES:
            return self.answer(413, f"over {MAX_BYTES} bytes", close=True)
        body = self.rfile.read(int(length))
        try:
            if not is_authentic(self.headers, body):
                return self.answer(401, "no signature by a known secret, or too old")
            event = self.event_of(body)
            if event is None:
                return self.answer(400, "not an event")
            JOURNAL.once(self.headers["webhook-id"], lambda: handle(event))
        except NeverPossible as error:
            return self.answer(422, f"never possible: {error}")
        except Exception:
            traceback.print_exc()
            return self.answer(500, "see the log of the consumer")
        return self.answer(204)

    def event_of(self, body):
        """None for what serve does not send. Never 422: serve would give the event up for a mistake made here."""
        try:
            event = json.loads(body)
            return event if event["id"] == self.headers["webhook-id"] and event["data"]["kind"] else None
        except (ValueError, KeyError, TypeError, RecursionError):
            return None

    def answer(self, status, why="", close=False):
        """`close`: the body was not read, so nothing more can be read from the connection."""
        text = why.encode(errors="backslashreplace")
        self.send_response(status)
        if status != 204:
            self.send_header("content-type", "text/plain; charset=utf-8")
            self.send_header("content-length", str(len(text)))
        if close:
            self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        """Prints no line for each request."""


if __name__ == "__main__":
    for secret in SECRETS:
        key_in(secret)
    JOURNAL = Journal(os.environ.get("JOURNAL", "handled.db"))
    ThreadingHTTPServer.request_queue_size = 64
    address = (os.environ.get("HOST", "127.0.0.1"), int(os.environ.get("PORT", "3000")))
    ThreadingHTTPServer(address, Door).serve_forever()
