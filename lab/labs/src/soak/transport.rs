//! The transports under test, and their endpoints.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use apus::trace::{FreezeTriggers, TraceFiles};
use apus::{Config, Endpoint, EndpointBuilder, PollMode, RawConfig};
use serde::{Deserialize, Serialize};

use apus_testbed::error::Error;

/// A transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Transport {
    /// UDP datagrams.
    Udp,
    /// Shared memory between processes of one host.
    Memory,
    /// Raw IP in the kernel profile.
    Ip,
}

/// Duration of a call beyond which a time trace is written, so that the folder of traces is in use.
const SLOW: Duration = Duration::from_millis(20);

/// Sessions of silent clients that a server remembers. The default of 100,000 would fill throughout
/// a soak, some hundred bytes per killed client, and look like a leak; this number is reached
/// before the warm-up ends.
const DORMANT_SESSIONS: u64 = 8;

impl Transport {
    pub(super) const ALL: [Self; 3] = [Self::Udp, Self::Memory, Self::Ip];

    /// Returns the name in `--only` and in results.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Memory => "memory",
            Self::Ip => "ip",
        }
    }

    /// Returns the bytes of the shortest reply: the kernel profile has no empty messages.
    pub(super) const fn shortest_reply(self) -> u32 {
        match self {
            Self::Ip => 1,
            Self::Udp | Self::Memory => 0,
        }
    }

    /// Opens an endpoint at `port` of the address `at`; 0 is any free port. Time traces are written
    /// to `traces`.
    pub(super) fn open(
        self,
        at: Ipv4Addr,
        port: u16,
        serve: bool,
        traces: Option<&Path>,
    ) -> Result<Endpoint, Error> {
        let address = SocketAddr::from((at, port));
        let config = Config::builder().max_dormant_sessions(DORMANT_SESSIONS).build();
        let mut builder: EndpointBuilder = Endpoint::builder()
            .config(config.expect("a number in its range"))
            .poll_mode(PollMode::Block)
            .local(self == Self::Memory)
            // Introspection is not under test, and its folder is outside the lab.
            .observable(false)
            .serve(serve);
        if self == Self::Ip {
            builder = builder.raw(RawConfig::default());
        }
        if let Some(folder) = traces {
            builder = builder
                .trace_files(TraceFiles::new(folder).at_most(usize::MAX))
                .freeze_triggers(FreezeTriggers::new().slow_rpc(SLOW).restart(true));
        }
        builder
            .bind(address)
            .map_err(|error| Error::endpoint(format!("open an endpoint at {address}"), error))
    }
}
