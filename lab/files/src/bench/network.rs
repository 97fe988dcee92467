//! The path between client and server: the loopback interface, or a path with a delay.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

use apus_testbed::delay::DelayedPath;
use apus_testbed::error::Error;

/// Nominal round-trip time of the loopback interface in milliseconds.
const LOOPBACK_RTT: f64 = 0.02;

/// A path between client and server. Dropping it removes everything that was created for it.
pub(super) struct Network {
    /// The round-trip time in milliseconds, as rows show it.
    pub(super) rtt: f64,
    delayed: Option<DelayedPath>,
}

impl Network {
    /// Returns the loopback interface.
    pub(super) const fn loopback() -> Self {
        Self { rtt: LOOPBACK_RTT, delayed: None }
    }

    /// Creates a path with a round-trip time in milliseconds.
    ///
    /// # Errors
    ///
    /// This user is not root, or the system has no network namespaces.
    pub(super) fn delayed(rtt: f64, program: &Path) -> Result<Self, Error> {
        if !rustix::process::geteuid().is_root() {
            return Err(Error::Peer("it takes root: try `sudo apus-lab fs bench`".to_owned()));
        }
        let one_way = Duration::from_secs_f64(rtt / 2.0 / 1e3);
        Ok(Self { rtt, delayed: Some(DelayedPath::up(one_way, program)?) })
    }

    /// Whether client and server are in different network namespaces.
    pub(super) const fn is_delayed(&self) -> bool {
        self.delayed.is_some()
    }

    pub(super) fn name(&self) -> String {
        if self.is_delayed() { format!("{}ms", self.rtt) } else { "loopback".to_owned() }
    }

    pub(super) const fn server_address(&self) -> IpAddr {
        if self.is_delayed() { DelayedPath::SERVER } else { IpAddr::V4(Ipv4Addr::LOCALHOST) }
    }

    /// Returns the network that the server must trust; `None` if it is this host.
    pub(super) fn trusted(&self) -> Option<String> {
        self.is_delayed().then(|| DelayedPath::NETWORK.to_owned())
    }

    pub(super) fn at_server(&self) -> Vec<OsString> {
        self.delayed.as_ref().map(DelayedPath::at_server).unwrap_or_default()
    }

    pub(super) fn at_client(&self) -> Vec<OsString> {
        self.delayed.as_ref().map(DelayedPath::at_client).unwrap_or_default()
    }

    /// Removes the path, and returns a description of its delays.
    pub(super) fn down(self) -> Result<Option<String>, Error> {
        let Some(delayed) = self.delayed else { return Ok(None) };
        let report = delayed.down()?;
        Ok(Some(format!(
            "RTT {} ms: the delay program forwarded {} packets, {:.0} us (median) and {:.0} us (p99) later than due each \
             way, and dropped {}",
            self.rtt, report.packets, report.late_p50_us, report.late_p99_us, report.dropped
        )))
    }
}
