"""Types of the options of an endpoint; docs/configuration.md describes them."""

from typing import TypedDict


class UdpSettings(TypedDict, total=False):
    """Options of the socket."""

    receive_buffer: int
    send_buffer: int
    max_ip_packet: int
    segmentation_offload: bool
    receive_offload: bool
    priorities: bool
    reports: bool
    busy_poll_usecs: int
    receive_coalescing_usecs: int
    ipv6: bool


class TraceSettings(TypedDict, total=False):
    """Time traces."""

    folder: str
    max_files: int
    slow_rpc_usecs: int
    restart: bool
    lost_packet: bool
    freeze_peers: bool
    obey_peers: bool


class SecuritySettings(TypedDict, total=False):
    """Sealed packets."""

    mode: str
    """`"tls"`, the default, `"keys"` or `"secret"`."""
    certificate: str
    key: str
    ca: str
    revoked: str
    known: str
    secret: str
    allow: list[str]
    verify_address: bool
    plaintext: str
    """`"local-only"`: calls to peers of this host use shared memory."""


class Settings(TypedDict, total=False):
    """Options of an endpoint."""

    poll: str
    """How threads wait: `"block"`, the default of this package, `"spin"`, or
    `"hybrid=MICROSECONDS"`, which spins for that time before it sleeps: the fastest if client and
    server each have a core."""
    engine: str
    """The threads that run the loop: `"waiters"`, `"dedicated"` or `"dedicated=CPU"`."""
    receive_batch: int
    max_queueing_usecs: int
    call_timeout_msecs: int
    """Default timeout of calls."""
    core_share: int
    local: bool
    """Whether calls to peers of this host use shared memory."""
    udp: UdpSettings
    trace: TraceSettings
    security: SecuritySettings
    """Seals every packet: peers without an admitted identity are refused. Without it packets are in
    cleartext."""
    protocol: dict[str, int | bool | str]
    """Parameters of the protocol, such as `max_message`."""
