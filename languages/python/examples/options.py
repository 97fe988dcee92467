"""Options of endpoints."""

import pathlib
import tempfile

import apus

# [sample options]
server = apus.Endpoint.bind(
    "127.0.0.1:0", poll="hybrid=50", call_timeout_msecs=2000, protocol={"max_message": 1_000_000}
)
# [end]
server.close()

folder = tempfile.TemporaryDirectory()
path = pathlib.Path(folder.name) / "secret"
path.touch(mode=0o600)
path.write_bytes(b"s" * 32)

# [sample security]
sealed = apus.Endpoint.bind("127.0.0.1:0", security={"mode": "secret", "secret": str(path)})
# [end]
sealed.close()
folder.cleanup()
