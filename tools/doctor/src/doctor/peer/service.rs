//! What can be told of a path to a peer that runs an apus service?
//!
//! Its answers come back with traffic classes of their own, and long messages arrive or not. What arrives there of our
//! classes only a listener could say.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use apus::{Bytes, CallOptions, Endpoint, FailureKind};
use apus_wire::{
    Body, DATA_HEADER_LEN, Data, Dialect, Flags, Header, Kind, Packet, Profile, Role, SenderId,
    UdpFields,
};
use nix::sys::socket::MsgFlags;

use super::path::remedies;
use super::socket::ClassSocket;
use super::unmarked;
use crate::doctor::finding::{Finding, Measured};
use apus_contenders::apus::{Path, builder};
use apus_report::stats::Spread;

/// Short calls.
const CALLS: usize = 20;

/// Bytes of a long message: as many as are sent without asking.
const LONG: usize = 60_000;

/// How long a call may take. Ours: a hundred times what one takes that has to be sent again.
const PATIENCE: Duration = Duration::from_secs(2);

/// What calls of a service tell; `None` if nothing answers there.
pub(super) fn check(peer: SocketAddr) -> Option<Vec<Finding>> {
    let endpoint = builder(Path::Udp).client().ok()?;
    let call = |request: &Bytes| {
        let began = Instant::now();
        let options = CallOptions::new().timeout(PATIENCE).idempotent(true);
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
    let found = "an apus service answers; `apus doctor --listen` on its host would tell more";
    let mut peer_finding = Finding::note("peer", found)
        .because("What arrives there of this host's priorities and bursts only a listener can say.")
        .mend([format!(
            "apus doctor --listen 0.0.0.0:{}  # on the peer, and call that port",
            super::PORT
        )]);
    if !times.is_empty() {
        let Spread { median, min, .. } = Spread::over(&times);
        peer_finding = peer_finding.measured([
            Measured::new("a call of 11 bytes, the least", min, "us"),
            Measured::new("the same, median", median, "us"),
        ]);
    }
    Some(vec![
        peer_finding,
        way_back(peer),
        long_message(&endpoint, peer, call(&Bytes::from(vec![0; LONG]))),
    ])
}

type Called = (Result<Bytes, apus::CallError>, Duration);

/// Whether long messages get through, there and back.
fn long_message(endpoint: &Endpoint, peer: SocketAddr, (result, time): Called) -> Finding {
    const CHECK: &str = "long-messages";
    match result {
        Ok(_) => {
            let again = endpoint.metrics().protocol.sent(Kind::Resend);
            let found = format!("a message of {LONG} bytes goes there and is answered");
            let figures =
                [Measured::new(format!("a call of {LONG} bytes"), time.as_secs_f64() * 1e6, "us")];
            if again == 0 {
                return Finding::ok(CHECK, found).measured(figures);
            }
            Finding::note(CHECK, format!("{found}, but parts had to be asked for again ({again} times)"))
                .because("The peer was busy for 5 ms, or packets are lost on the way back: small buffers, a full receive buffer, a bad cable.")
                .measured(figures)
                .mend(["nstat -z UdpRcvbufErrors; ethtool -S DEVICE | grep -i drop  # on both hosts: where they are dropped"])
        }
        Err(error) => {
            let silent = matches!(
                &error,
                apus::CallError::Failed(failed) if matches!(failed.kind, FailureKind::PeerSilent { .. })
            );
            let found = format!("short messages are answered, one of {LONG} bytes is not: {error}");
            let finding = Finding::error(CHECK, found).mend([format!(
                "tracepath -n {}  # whether full packets get there; `ip link set dev DEVICE mtu 1500` if not",
                peer.ip()
            )]);
            if silent {
                finding.because(
                    "Full packets probably vanish: an MTU that is not the same everywhere.",
                )
            } else {
                finding
            }
        }
    }
}

/// With which traffic class the service's host answers a stranger.
fn way_back(peer: SocketAddr) -> Finding {
    const CHECK: &str = "path-priorities";
    match class_of_answer(peer) {
        Some(0) => Finding::warning(CHECK, "what comes back has no priority: traffic class 0x00")
            .because(
                "A service answers strangers with the highest level. Something on the way clears it, or the peer cannot set \
                 it; short replies then wait behind long ones.",
            )
            .mend(remedies(peer)),
        Some(class) => Finding::ok(CHECK, format!("what comes back has kept its priority (traffic class {class:#04x})")),
        None => Finding::note(CHECK, "nothing came back whose traffic class could be seen"),
    }
}

/// Sends the first packet of a client that the service does not know: it holds the request, which it never executes, and
/// asks who that is (AMO-1), with the class of control packets.
fn class_of_answer(peer: SocketAddr) -> Option<u8> {
    let mut socket = ClassSocket::towards(peer).ok()?;
    let local = socket.address().ok()?;
    let fields =
        UdpFields { flags: Flags::NONE, incarnation: 1, low_water: UdpFields::LOW_WATER_UNKNOWN };
    let id = SenderId::new(2, Role::Client);
    let header = Header::new(Kind::Data, local.port(), peer.port(), id, Dialect::Udp(fields));
    let data = Data {
        message_length: 1,
        incoming: 1,
        ack: None,
        cutoff_version: 0,
        retransmit: false,
        offset: 0,
        offset_in_sequence: false,
    };
    let mut buffer = [0; apus_wire::MAX_HEADER_LEN];
    let length = Packet { header, body: Body::Data(data, b"?") }.emit_header(&mut buffer);
    debug_assert_eq!(length, DATA_HEADER_LEN);
    let packet = [&buffer[..length], b"?"].concat();
    socket.patience(PATIENCE / 4).ok()?;
    for _ in 0..3 {
        socket.send(&packet, 0xe0, packet.len()).ok()?;
        if let Ok(datagram) = socket.receive(MsgFlags::empty())
            && Packet::parse(Profile::Udp, datagram.bytes).is_ok()
        {
            return Some(unmarked(datagram.class));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;
    use apus_contenders::apus::{open, server};
    use std::thread;

    #[test]
    fn a_service_tells_of_its_way_back() {
        let serving = open(builder(Path::Udp)).unwrap();
        let findings = thread::scope(|scope| {
            scope.spawn(|| server::echo(&serving).unwrap());
            let findings = check(serving.local_addr()).unwrap();
            serving.shutdown();
            findings
        });
        let [peer, priorities, long] = &findings[..] else { panic!("{findings:?}") };
        assert_eq!((peer.severity, peer.measured.len()), (Severity::Note, 2));
        assert_eq!(priorities.severity, Severity::Ok, "{priorities:?}");
        assert!(priorities.found.contains("0xe0"), "{priorities:?}");
        // A busy machine may have dropped packets; that is said and no error.
        assert_ne!(long.severity, Severity::Error, "{long:?}");
    }
}
