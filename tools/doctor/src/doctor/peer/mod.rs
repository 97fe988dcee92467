//! What becomes of packets on their way to a peer?
//!
//! The peer runs `apus doctor --listen`, which says what it saw of each packet: traffic class, length, how many came
//! together, how many of a burst came at all. A peer that runs an apus service says less: its way back is seen, and
//! whether long messages get through.

mod asker;
mod listener;
mod packet;
mod path;
mod service;
mod socket;

pub use listener::Listener;

use std::net::SocketAddr;

use apus_proto::Config;
use nix::errno::Errno;

use super::finding::{Finding, Measured};
use super::host::Host;
use apus_report::stats::Spread;
use apus_testbed::error::Error;
use asker::{Asker, Reply};

/// Port at which a listener is expected: the one behind that of `apus serve`.
pub const PORT: u16 = 4001;

/// Asks for the shortest round trip.
const GREETINGS: usize = 20;

/// Bits of a traffic class that belong to congestion marks: RFC 3168.
const ECN: u8 = 0b11;

/// The path to `peer`, whatever it runs.
pub(super) fn check(host: &Host, peer: SocketAddr) -> Result<Vec<Finding>, Error> {
    const CHECK: &str = "peer";
    let mut asker = match Asker::new(peer) {
        Ok(asker) => asker,
        Err(error) => {
            let finding = Finding::error(CHECK, error.to_string());
            return Ok(vec![finding.mend([format!("ip route get {}", peer.ip())])]);
        }
    };
    let first = asker.echo(packet::SHORTEST, 0, packet::SHORTEST)?;
    let why = match first {
        Reply::Answer(_) => {
            let mut findings = vec![round_trip(&mut asker)?];
            findings.extend(path::check(host, &mut asker, peer)?);
            return Ok(findings);
        }
        Reply::Silence => "nothing comes back".to_owned(),
        // An apus service does not answer a doctor's question, but its host would.
        Reply::Refused(Errno::ECONNREFUSED) => "nobody listens at that port".to_owned(),
        Reply::Refused(Errno::EPERM) => "this host's own firewall forbids it".to_owned(),
        Reply::Refused(error) => error.desc().to_owned(),
    };
    if first == Reply::Silence
        && let Some(findings) = service::check(peer)
    {
        return Ok(findings);
    }
    let port = peer.port();
    let finding = Finding::error(CHECK, format!("{peer}: {why}"))
        .because("Nothing can be said about the path without somebody at its other end.")
        .mend([
            format!(
                "apus doctor --listen 0.0.0.0:{port}  # on the peer, or `apus serve 0.0.0.0:{port}`"
            ),
            format!("nft list ruleset  # on either host: what forbids UDP to port {port}"),
        ]);
    Ok(vec![finding])
}

fn round_trip(asker: &mut Asker) -> Result<Finding, Error> {
    let mut times = Vec::new();
    for _ in 0..GREETINGS {
        if let Reply::Answer(answer) = asker.echo_once()? {
            times.push(answer.time as f64 / 1e3);
        }
    }
    let finding = Finding::ok("peer", "a doctor listens and answers");
    if times.is_empty() {
        return Ok(finding);
    }
    let Spread { median, min, .. } = Spread::over(&times);
    Ok(finding.measured([
        Measured::new("there and back, the least", min, "us"),
        Measured::new("the same, median; both sides sleep", median, "us"),
    ]))
}

/// The traffic classes that apus gives its levels, the lowest first.
fn classes() -> [u8; 8] {
    Config::default().priority_map().map(|level| level << 5)
}

/// A traffic class without congestion marks.
const fn unmarked(class: u8) -> u8 {
    class & !ECN
}
