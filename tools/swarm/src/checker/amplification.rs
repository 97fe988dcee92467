//! Does anybody get much more than was sent in his name, and do control packets end?
//!
//! - BAD-5: until a client has repeated the session that a server proposed, the server sends it at most three
//!   times the bytes that came from its address, IP and UDP headers included.
//! - TIME-6: RESENDs to a peer that is silent come in bursts of at most 64, one each resend interval.
//! - TIME-9, RPC-10: a server asks a silent client at most so often for an acknowledgment, and not at all once
//!   it has come.
//! - BUSY, RPC_UNKNOWN and CUTOFFS are answers: there are at most two for each packet that came, and one for
//!   each request that was let go.

use std::collections::HashMap;

use apus_proto::Profile;
use apus_wire::{AckList, Body, Flags, Role};
use foldhash::fast::FixedState;

use super::Checker;
use crate::directory::Directory;
use crate::seen::{Seen, What, Wire};
use crate::violation::{Kind, Violation};
use apus_sim::message::HostId;
use apus_workload::time::{MICROSECOND, MILLISECOND, Nanos};

/// IPv4 and UDP headers.
const AROUND: u64 = 28;
/// What a forged address may get of what was sent in its name (BAD-5).
const FACTOR: u64 = 3;
/// RESENDs of a burst (TIME-6).
const BURST: u64 = 64;
/// Control packets that may wait for the link while packets come that allow further ones (CAP-9).
const WAITING: u64 = 8_192;
/// Bytes that such a packet takes on the link, at most.
const CONTROL_BYTES: u64 = 180;
/// Questions for a packet with which a request begins (BAD-5).
const UNASKED: u64 = 4;
/// NEED_ACKs come at most this far apart (TIME-9).
const FARTHEST: Nanos = 100 * MILLISECOND;

/// What each host knows of each other one, and each call's questions.
#[derive(Debug)]
pub(crate) struct Amplification {
    pairs: HashMap<(HostId, HostId), Pair, FixedState>,
    calls: Vec<Questions>,
}

/// What a server has asked about a call.
#[derive(Clone, Copy, Debug, Default)]
struct Questions {
    /// NEED_ACKs since its client said anything about it.
    acks: u64,
    /// Whether it lives.
    confirms: u64,
    /// Whether its client has acknowledged the response, and NEED_ACKs since then.
    acked: bool,
    after_ack: u64,
    /// RESENDs of its client, and packets with which the request may have begun.
    resends: u64,
    data: u64,
}

/// What one host has exchanged with another one.
#[derive(Debug)]
struct Pair {
    /// As a server, with a client.
    received: u64,
    sent: u64,
    /// Sessions that the client was asked about.
    proposed: Vec<u32>,
    /// Whether it has repeated one of them.
    proved: bool,
    /// Packets of any kind.
    packets: u64,
    /// BUSY, RPC_UNKNOWN, CUTOFFS, and what besides packets may cause them.
    answers: u64,
    let_go: u64,
    /// RESENDs that may leave, up to now.
    resends: u64,
    /// When that was reckoned last.
    since: Nanos,
    /// When a packet came last.
    heard: Nanos,
}

impl Default for Pair {
    fn default() -> Self {
        Self {
            received: 0,
            sent: 0,
            proposed: Vec::new(),
            proved: false,
            packets: 0,
            answers: 0,
            let_go: 0,
            // The end of one burst may be followed by the next one at once.
            resends: 2 * BURST,
            since: 0,
            heard: 0,
        }
    }
}

impl Amplification {
    pub(crate) fn new(directory: &Directory) -> Self {
        Self {
            pairs: HashMap::default(),
            calls: vec![Questions::default(); directory.scenario.calls.len()],
        }
    }

    fn pair(&mut self, here: HostId, there: HostId) -> &mut Pair {
        self.pairs.entry((here, there)).or_default()
    }

    fn received(&mut self, directory: &Directory, at: Nanos, host: HostId, wire: &Wire<'_>) {
        let server_of = |id| directory.find(wire.peer, host, id);
        let (one, list) = match &wire.packet.body {
            Body::Data(data, _) => (data.ack, AckList::EMPTY),
            Body::Ack(list) => (None, *list),
            _ => (None, AckList::EMPTY),
        };
        for call in one.into_iter().chain(list.iter()).filter_map(|ack| server_of(ack.client_id)) {
            self.calls[call as usize].acked = true;
        }
        if let Some(call) = wire.call.filter(|_| wire.sender == Role::Client) {
            let questions = &mut self.calls[call as usize];
            questions.acks = 0;
            match wire.packet.body {
                Body::Resend(_) => questions.resends += 1,
                Body::Data(..) => questions.data += 1,
                _ => {}
            }
        }
        let pair = self.pair(host, wire.peer);
        pair.packets += 1;
        pair.heard = at;
        pair.resends = (pair.resends + BURST).min(WAITING);
        if wire.sender == Role::Client {
            pair.received += wire.len as u64 + AROUND;
            let fields = wire.packet.header.udp();
            let shown = fields.filter(|fields| fields.flags.contains(Flags::SESSION));
            pair.proved |= shown.is_some_and(|fields| pair.proposed.contains(&fields.incarnation));
        }
    }

    fn sent(
        &mut self,
        directory: &Directory,
        at: Nanos,
        host: HostId,
        wire: &Wire<'_>,
    ) -> Result<(), Violation> {
        let config = &directory.scenario.config;
        if config.profile() == Profile::Udp && wire.sender == Role::Server {
            self.sent_to_client(host, wire)?;
        }
        match &wire.packet.body {
            Body::Busy | Body::RpcUnknown | Body::Cutoffs(_) => self.answered(host, wire),
            Body::Resend(_) => self.asked_again(directory, at, host, wire),
            Body::NeedAck => self.asked(directory, wire),
            _ => Ok(()),
        }
    }

    fn sent_to_client(&mut self, host: HostId, wire: &Wire<'_>) -> Result<(), Violation> {
        let pair = self.pair(host, wire.peer);
        if let (Body::NeedAck, Some(fields)) = (&wire.packet.body, wire.packet.header.udp())
            && !pair.proposed.contains(&fields.incarnation)
        {
            pair.proposed.push(fields.incarnation);
        }
        if pair.proved {
            return Ok(());
        }
        pair.sent += wire.len as u64 + AROUND;
        Violation::unless(
            pair.sent <= FACTOR * pair.received,
            Kind::Amplification,
            wire.call,
            || {
                (
                    format!(
                        "at most {FACTOR} times {} bytes to host {}, which has not shown that it is there",
                        pair.received, wire.peer
                    ),
                    format!(
                        "host {host} has sent it {} bytes, the last a {:?}",
                        pair.sent,
                        wire.packet.body.kind()
                    ),
                )
            },
        )
    }

    fn answered(&mut self, host: HostId, wire: &Wire<'_>) -> Result<(), Violation> {
        let pair = self.pair(host, wire.peer);
        pair.answers += 1;
        let most = 2 * pair.packets + pair.let_go;
        Violation::unless(pair.answers <= most, Kind::Amplification, wire.call, || {
            (
                format!("at most {most} answers of host {host} to host {}", wire.peer),
                format!("{}, the last a {:?}", pair.answers, wire.packet.body.kind()),
            )
        })
    }

    fn asked_again(
        &mut self,
        directory: &Directory,
        at: Nanos,
        host: HostId,
        wire: &Wire<'_>,
    ) -> Result<(), Violation> {
        let interval = directory.scenario.config.resend_interval_usecs() * MICROSECOND;
        let drained = directory.scenario.fabric.topology.host_rate.time(WAITING * CONTROL_BYTES);
        let pair = self.pair(host, wire.peer);
        let intervals = (at - pair.since) / interval;
        pair.since += intervals * interval;
        let saved_up = if at - pair.heard > drained { 2 * BURST } else { WAITING };
        pair.resends = (pair.resends + intervals * BURST).min(saved_up);
        Violation::unless(pair.resends > 0, Kind::Amplification, wire.call, || {
            (
                format!(
                    "{BURST} RESENDs of host {host} to host {} per interval or packet from there",
                    wire.peer
                ),
                format!("more, and {saved_up} that were saved up"),
            )
        })?;
        pair.resends -= 1;
        Ok(())
    }

    fn asked(&mut self, directory: &Directory, wire: &Wire<'_>) -> Result<(), Violation> {
        let Some(call) = wire.call else { return Ok(()) };
        let questions = &mut self.calls[call as usize];
        if wire.packet.header.udp().is_some_and(|fields| fields.flags.contains(Flags::CONFIRM)) {
            questions.confirms += 1;
            let most = UNASKED * questions.data + questions.resends;
            return Violation::unless(
                questions.confirms <= most,
                Kind::Amplification,
                call,
                || {
                    (
                        format!(
                            "the client of call {call} is asked at most {most} times whether it lives"
                        ),
                        format!("it is asked {} times", questions.confirms),
                    )
                },
            );
        }
        questions.after_ack += u64::from(questions.acked);
        // One may have waited for the link.
        Violation::unless(questions.after_ack <= 1, Kind::Amplification, call, || {
            (
                format!(
                    "the response to call {call}, which its client has acknowledged, is forgotten"
                ),
                "its server asks for the acknowledgment again and again".to_owned(),
            )
        })?;
        questions.acks += 1;
        let config = &directory.scenario.config;
        // They double from `need_ack_usecs` on, up to the farthest distance, until both limits are reached.
        let doublings = FARTHEST / (config.need_ack_usecs() * MICROSECOND);
        let in_time = config.timeout_usecs() * MICROSECOND / FARTHEST
            + u64::from(doublings.max(1).ilog2())
            + 2;
        let most = config.need_ack_limit().max(in_time) + 1;
        Violation::unless(questions.acks <= most, Kind::Amplification, call, || {
            (
                format!(
                    "at most {most} NEED_ACKs for call {call}, about which its client says nothing"
                ),
                format!("{}", questions.acks),
            )
        })
    }
}

impl Checker for Amplification {
    fn see(&mut self, directory: &Directory, seen: &Seen<'_>) -> Result<(), Violation> {
        let host = seen.host;
        match &seen.what {
            What::Received(wire) => self.received(directory, seen.at, host, wire),
            What::Sent(wire) => self.sent(directory, seen.at, host, wire)?,
            // Another life of its server gives another response.
            What::Replied(call) => self.calls[*call as usize].acked = false,
            What::Abandoned(call) => self.pair(host, directory.call(*call).from).let_go += 1,
            What::Crashed => self.pairs.retain(|(here, _), _| *here != host),
            _ => {}
        }
        Ok(())
    }
}
