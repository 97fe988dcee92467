//! The transports that are soaked, and the endpoints that use them.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use apus::trace::{FreezeTriggers, TraceFiles};
use apus::{Config, Endpoint, EndpointBuilder, PollMode, RawConfig};
use serde::{Deserialize, Serialize};

use apus_testbed::error::Error;

/// How the messages travel.
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

/// A call that takes longer is written to the time trace, so that the folder of traces is in use.
const SLOW: Duration = Duration::from_millis(20);

/// Sessions of silent clients that a server remembers. The default of 100,000 would fill for as long as a soak lasts, some
/// hundred bytes for each client that is killed, and look like a leak; this many are there when the warm-up ends.
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

    /// Opens an endpoint at `port` of the address `at`; 0 is any free port. Time traces go to `traces`.
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
            .config(config.expect("the number is in its range"))
            .poll_mode(PollMode::Block)
            .local(self == Self::Memory)
            // Inspection is no part of this, and its folder is not the one of the lab.
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
