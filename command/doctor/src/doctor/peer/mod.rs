//! Path checks: treatment of packets on the path to a peer.
//!
//! The peer runs `apus doctor --listen`, which reports the traffic class and length of each packet,
//! the number of packets per receive call, and the number of packets of a burst that arrived. A
//! peer that runs an apus service reveals less: the traffic class on the return path, and whether
//! long messages are delivered.

mod client;
mod listener;
mod packet;
mod path;
mod service;
mod socket;
mod traffic_class;

pub use listener::{Listener, PORT};

use std::net::SocketAddr;

use ::apus::Settings;
use nix::errno::Errno;

use super::finding::{Finding, Measurement};
use super::host::SystemFiles;
use apus_measure::error::Error;
use apus_report::stats::Spread;
use client::{ProbeClient, ProbeResult};

/// Number of packets for the round-trip measurement.
const PINGS: usize = 20;

/// Checks the path to `peer`, which may run a listener, a service, or neither.
pub(super) fn check(
    host: &SystemFiles,
    peer: SocketAddr,
    settings: &Settings,
) -> Result<Vec<Finding>, Error> {
    const CHECK: &str = "peer";
    let mut client = match ProbeClient::new(peer) {
        Ok(client) => client,
        Err(error) => {
            let finding = Finding::error(CHECK, error.to_string());
            return Ok(vec![finding.fix([format!("ip route get {}", peer.ip())])]);
        }
    };
    let first = client.echo(packet::MIN_LEN, 0, packet::MIN_LEN)?;
    let why = match first {
        ProbeResult::Response(_) => {
            let mut findings = vec![round_trip(&mut client)?];
            findings.extend(path::check(host, &mut client, peer, settings)?);
            return Ok(findings);
        }
        ProbeResult::Silence => "no response".to_owned(),
        // Neither a listener nor an apus service uses the port.
        ProbeResult::Refused(Errno::ECONNREFUSED) => "no socket listens on that port".to_owned(),
        ProbeResult::Refused(Errno::EPERM) => "the firewall of this host forbids it".to_owned(),
        ProbeResult::Refused(error) => error.desc().to_owned(),
    };
    if first == ProbeResult::Silence
        && let Some(findings) = service::check(peer, settings)
    {
        return Ok(findings);
    }
    let port = peer.port();
    let finding = Finding::error(CHECK, format!("{peer}: {why}"))
        .because("The path can be checked only with a doctor or a service at its other end.")
        .fix([
            format!(
                "apus doctor --listen 0.0.0.0:{port}  # on the peer, or `apus serve 0.0.0.0:{port}`"
            ),
            format!("nft list ruleset  # on both hosts: rules that drop UDP to port {port}"),
        ]);
    Ok(vec![finding])
}

fn round_trip(client: &mut ProbeClient) -> Result<Finding, Error> {
    let mut times = Vec::new();
    for _ in 0..PINGS {
        if let ProbeResult::Response(answer) = client.echo_once()? {
            times.push(answer.time as f64 / 1e3);
        }
    }
    let finding = Finding::ok("peer", "a listening doctor responds");
    if times.is_empty() {
        return Ok(finding);
    }
    let Spread { median, min, .. } = Spread::over(&times);
    Ok(finding.with_measurements([
        Measurement::new("shortest round trip", min, "us"),
        Measurement::new("median round trip; both sides sleep", median, "us"),
    ]))
}
