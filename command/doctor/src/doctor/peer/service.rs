//! Path checks with an apus service.
//!
//! Its responses reveal the traffic class on the return path, and whether long messages are
//! delivered. Only a listener can report the classes that arrive at the peer.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use apus::{Bytes, CallOptions, Endpoint, FailureKind, Settings};
use apus_wire::{
    Body, DATA_HEADER_LEN, Data, Dialect, Features, Header, Kind, Packet, Profile, Role, SenderId,
    UdpFields,
};
use nix::sys::socket::MsgFlags;

use super::listener::PORT;
use super::path::{priority_fixes, without_priorities};
use super::socket::ClassSocket;
use super::traffic_class::without_ecn;
use crate::doctor::finding::{Finding, Measurement};
use apus_measure::exchange::{Path, builder};
use apus_report::stats::Spread;

/// Number of short calls.
const CALLS: usize = 20;

/// Length of a long message in bytes: the unscheduled bytes.
const LONG: usize = 60_000;

/// Timeout of a call. Chosen by us: a hundred times the duration of a call with a retransmission.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Runs all checks that need a service; `None` if no service answers.
pub(super) fn check(peer: SocketAddr, settings: &Settings) -> Option<Vec<Finding>> {
    let endpoint = builder(Path::Udp).client().ok()?;
    let call = |request: &Bytes| {
        let began = Instant::now();
        let options = CallOptions::new().timeout(TIMEOUT).idempotent(true);
        let result = endpoint.call_with(peer, request.clone(), options);
        (result, began.elapsed())
    };
    let short = Bytes::from_static(b"apus doctor");
    let (first, _) = call(&short);
    if first.is_err() {
        return None;
    }
    let times: Vec<f64> = (0..CALLS)
        .map(|_| call(&short))
        .filter(|(result, _)| result.is_ok())
        .map(|(_, time)| time.as_secs_f64() * 1e6)
        .collect();
    let fact = "an apus service responds; `apus doctor --listen` on its host would reveal more";
    let mut peer_finding = Finding::note("peer", fact)
        .because("Only a listener can report which priorities and bursts of this host arrive at the peer.")
        .fix([format!("apus doctor --listen 0.0.0.0:{PORT}  # on the peer; then examine that port")]);
    if !times.is_empty() {
        let Spread { median, min, .. } = Spread::over(&times);
        peer_finding = peer_finding.with_measurements([
            Measurement::new("shortest call of 11 bytes", min, "us"),
            Measurement::new("median call of 11 bytes", median, "us"),
        ]);
    }
    Some(vec![
        peer_finding,
        without_priorities(return_class(peer), settings),
        long_message(&endpoint, peer, call(&Bytes::from(vec![0; LONG]))),
    ])
}

type CallResult = (Result<Bytes, apus::CallError>, Duration);

/// Checks whether a long message is delivered in both directions.
fn long_message(endpoint: &Endpoint, peer: SocketAddr, (result, time): CallResult) -> Finding {
    const CHECK: &str = "long-messages";
    if endpoint.metrics().protocol.recovery.paths_narrowed > 0 {
        return narrow_path(peer, result.is_ok());
    }
    match result {
        Ok(_) => {
            let again = endpoint.metrics().protocol.sent(Kind::Resend);
            let fact = format!("a message of {LONG} bytes is delivered in both directions");
            let figures = [Measurement::new(
                format!("a call of {LONG} bytes"),
                time.as_secs_f64() * 1e6,
                "us",
            )];
            if again == 0 {
                return Finding::ok(CHECK, fact).with_measurements(figures);
            }
            Finding::note(CHECK, format!("{fact}, with {again} RESENDs"))
                .because("The peer was busy for 5 ms, or packets are lost on the way back. Possible causes: small buffers, a full receive buffer, a bad cable.")
                .with_measurements(figures)
                .fix(["nstat -z UdpRcvbufErrors; ethtool -S DEVICE | grep -i drop  # on both hosts: drop counters"])
        }
        Err(error) => {
            let silent = matches!(
                &error,
                apus::CallError::Failed(failed) if matches!(failed.kind, FailureKind::PeerSilent { .. })
            );
            let fact = format!("short messages are answered; one of {LONG} bytes is not: {error}");
            let finding = Finding::error(CHECK, fact).fix([format!(
                "tracepath -n {}  # whether full packets arrive; if not: `ip link set dev DEVICE mtu 1500`",
                peer.ip()
            )]);
            if silent {
                finding.because(
                    "Full packets are probably lost, because the MTU differs along the path.",
                )
            } else {
                finding
            }
        }
    }
}

/// A path that drops long packets without a report, as the endpoint has found.
fn narrow_path(peer: SocketAddr, is_delivered: bool) -> Finding {
    let fact = "packets of more than 1280 bytes are lost on the way, and no ICMP error reports it";
    let finding = if is_delivered {
        Finding::warning("path-mtu", fact).because(
            "Long messages arrive, because apus sends shorter packets after three losses; each new client meets the \
             losses first.",
        )
    } else {
        Finding::error("path-mtu", fact)
            .because("Shorter packets are lost as well: long messages fail.")
    };
    finding.fix([
        format!("tracepath -n {}  # finds the link with the small MTU", peer.ip()),
        "ip link set dev DEVICE mtu 1500  # at its ends; or let ICMP \"fragmentation needed\" pass"
            .to_owned(),
    ])
}

/// Checks the traffic class of the service's response to an unknown client.
fn return_class(peer: SocketAddr) -> Finding {
    const CHECK: &str = "path-priorities";
    match class_of_answer(peer) {
        Some(0) => Finding::warning(CHECK, "responses have no priority: traffic class 0x00")
            .because(
                "A service answers unknown clients at the highest level. A device on the path clears the class, or the peer \
                 cannot set it. Short responses then wait behind long ones.",
            )
            .fix(priority_fixes(peer)),
        Some(class) => Finding::ok(CHECK, format!("responses keep their priority (traffic class {class:#04x})")),
        None => Finding::note(CHECK, "no response with a traffic class arrived"),
    }
}

/// Sends the first packet of an unknown client. The service creates no state for the request, and
/// sends a session challenge (AMO-1) with the class of control packets.
fn class_of_answer(peer: SocketAddr) -> Option<u8> {
    let mut socket = ClassSocket::towards(peer).ok()?;
    let local = socket.address().ok()?;
    let fields = UdpFields {
        incarnation: 1,
        low_water: UdpFields::LOW_WATER_UNKNOWN,
        features: Features::OURS,
        ..UdpFields::default()
    };
    let id = SenderId::new(2, Role::Client);
    let header = Header::new(Kind::Data, local.port(), peer.port(), id, Dialect::Udp(fields));
    let data = Data::first(1, 1);
    let mut buffer = [0; apus_wire::MAX_HEADER_LEN];
    let length = Packet { header, body: Body::Data(data, b"?") }.emit_header(&mut buffer);
    debug_assert_eq!(length, DATA_HEADER_LEN);
    let packet = [&buffer[..length], b"?"].concat();
    socket.set_timeout(TIMEOUT / 4).ok()?;
    for _ in 0..3 {
        socket.send(&packet, 0xe0, packet.len()).ok()?;
        if let Ok(datagram) = socket.receive(MsgFlags::empty())
            && Packet::parse(Profile::Udp, datagram.bytes).is_ok()
        {
            return Some(without_ecn(datagram.class));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;
    use apus_measure::exchange::{open, server};
    use std::thread;

    #[test]
    fn a_service_tells_of_its_return_class() {
        let serving = open(builder(Path::Udp)).unwrap();
        let findings = thread::scope(|scope| {
            scope.spawn(|| server::echo(&serving).unwrap());
            let findings = check(serving.local_addr(), &Settings::default()).unwrap();
            serving.shutdown();
            findings
        });
        let [peer, priorities, long] = &findings[..] else { panic!("{findings:?}") };
        assert_eq!((peer.severity, peer.measurements.len()), (Severity::Note, 2));
        assert_eq!(priorities.severity, Severity::Ok, "{priorities:?}");
        assert!(priorities.fact.contains("0xe0"), "{priorities:?}");
        // On a busy machine packets may be dropped; that is a note, not an error.
        assert_ne!(long.severity, Severity::Error, "{long:?}");
    }
}
