//! Delayed path: two hosts with a fixed delay between them.
//!
//! ```text
//!   client ── gen0 ════ in0 ── delay program ── out0 ════ far0 ── server
//! ```
//!
//! The program forwards each IPv4 packet, in either direction, after the delay. Kernels without
//! netem offer no equivalent, and netem would not let another process compute the delay that it
//! adds.
//!
//! - **DELAY-1** No packet leaves before its delay has passed, and no packet overtakes another of
//!   its direction.
//! - **DELAY-2** Packets leave as they arrived, except for checksums: veth leaves those to hardware
//!   that does not exist. Long sends are split before they reach the program.

mod checksum;
mod line;
mod report;
mod router;

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

use serde_json::json;

pub use report::DelayReport;

use crate::fabric::{PathNode, RouterPath};
use apus_measure::error::Error;
use apus_measure::process::{Agent, Job, Spawner, Task};

/// The work of the agents of this module: a program that creates delayed paths adds it to its jobs.
pub const JOBS: &[Job] = &[Job { name: JOB, run: router::agent }];

const JOB: &str = "delay";

/// Ethernet address of the client.
const CLIENT_ETHERNET: &str = "02:00:0a:5b:00:01";
/// Ethernet address of the server.
const SERVER_ETHERNET: &str = "02:00:0a:5b:00:02";

/// Two hosts with a delay between them. Dropping the value removes everything.
pub struct DelayedPath {
    path: RouterPath,
    router: Agent,
}

impl DelayedPath {
    /// The network of both hosts.
    pub const NETWORK: &str = "10.91.0.0/24";
    /// Address of the server.
    pub const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 91, 0, 2));
    /// Address of the client.
    pub const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 91, 0, 1));

    /// Creates the hosts and starts the delay program, which adds `one_way` to each packet's
    /// transit time. `program` calls [`agent_main`](crate::process::agent_main) with [`JOBS`].
    ///
    /// # Errors
    ///
    /// The user lacks the privilege to create namespaces, or a system program is missing. The
    /// system is left unchanged.
    pub fn up(one_way: Duration, program: &Path) -> Result<Self, Error> {
        let path = RouterPath::up()?;
        path.configure(
            PathNode::Source,
            &host(RouterPath::SOURCE, CLIENT_ETHERNET, Self::CLIENT, Self::SERVER, SERVER_ETHERNET),
        )?;
        path.configure(
            PathNode::Sink,
            &host(RouterPath::SINK, SERVER_ETHERNET, Self::SERVER, Self::CLIENT, CLIENT_ETHERNET),
        )?;
        let spawner = Spawner::Command {
            prefix: path.enter(PathNode::Router),
            program: program.as_os_str().to_owned(),
        };
        let details =
            json!({ "one_way_ns": u64::try_from(one_way.as_nanos()).unwrap_or(u64::MAX) });
        let name = "delay program".to_owned();
        let task = Task { name, core: None, bind: None, job: JOB.to_owned(), details };
        let mut router = spawner.start(task)?;
        router.address()?;
        Ok(Self { path, router })
    }

    /// Returns the prefix of a command that runs at the client.
    #[must_use]
    pub fn at_client(&self) -> Vec<OsString> {
        self.path.enter(PathNode::Source)
    }

    /// Returns the prefix of a command that runs at the server.
    #[must_use]
    pub fn at_server(&self) -> Vec<OsString> {
        self.path.enter(PathNode::Sink)
    }

    /// Stops the delay program and returns its report.
    ///
    /// # Errors
    ///
    /// The program has failed.
    pub fn down(self) -> Result<DelayReport, Error> {
        self.router.stop()
    }
}

/// Returns the `ip` commands for a host. `gso_max_segs 1` makes the kernel split long sends before
/// they leave.
fn host(interface: &str, own: &str, address: IpAddr, other: IpAddr, ethernet: &str) -> String {
    format!(
        "link set dev lo up\n\
         link set dev {interface} down\n\
         link set dev {interface} address {own} gso_max_segs 1\n\
         link set dev {interface} addrgenmode none up\n\
         address add {address}/24 dev {interface}\n\
         neighbour replace {other} lladdr {ethernet} dev {interface} nud permanent\n"
    )
}
