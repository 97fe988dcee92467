//! Replay of a recorded client: the core makes the recorded calls, and the recorded server
//! responds.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use apus_proto::{Call, Event, FailureKind, Unreachable};
use apus_sim::kernel::{self, Module};
use apus_wire::{Body, Kind};

use crate::core::{Core, SEGMENT, Said, compare_first, fixed, verify};
use crate::recording::{CLIENT, Piece, Recording, SERVER};

/// Result of the calls.
#[derive(Default)]
pub(crate) struct Done {
    pub(crate) responses: usize,
    pub(crate) refused: usize,
}

struct Play<'a> {
    recording: &'a Recording,
    /// Cores by Homa port.
    cores: BTreeMap<u16, Core>,
    models: BTreeMap<u16, Module>,
    requests: BTreeMap<u64, (Vec<u8>, bool)>,
    responses: BTreeMap<u64, (Vec<u8>, bool)>,
    /// Ids of the recording and of the core.
    ours: BTreeMap<u64, u64>,
    granted: BTreeMap<u64, u32>,
    first: BTreeMap<Piece, String>,
    /// Answers of the core to the first of several requests that arrived together.
    unanswered: Vec<Said>,
    /// Acks that requests carried.
    acked: BTreeSet<(u64, u64)>,
    done: BTreeSet<u64>,
    refused: usize,
}

/// Replays the recording.
pub(crate) fn play(recording: &Recording) -> Done {
    let mut play = Play {
        recording,
        cores: BTreeMap::new(),
        models: BTreeMap::new(),
        requests: recording.messages(true),
        responses: recording.messages(false),
        ours: BTreeMap::new(),
        granted: BTreeMap::new(),
        first: BTreeMap::new(),
        unanswered: Vec::new(),
        acked: BTreeSet::new(),
        done: BTreeSet::new(),
        refused: 0,
    };
    for (index, recorded) in recording.packets.iter().enumerate() {
        play.pass(recorded.at);
        if recorded.from_client {
            play.call(index);
        } else {
            play.receive(index);
        }
    }
    play.compare_first_transmissions();
    play.check_deliveries();
    Done { responses: play.done.len(), refused: play.refused }
}

impl Play<'_> {
    fn pass(&mut self, until: u64) {
        for port in self.cores.keys().copied().collect::<Vec<_>>() {
            let mut events = Vec::new();
            let said = self.cores.get_mut(&port).unwrap().pass(until, &mut events);
            self.note(&said);
            self.take(port, events);
        }
    }

    fn collect(&mut self, at: u64, port: u16) -> Vec<Said> {
        let mut events = Vec::new();
        let said = self.cores.get_mut(&port).unwrap().drain(at, &mut events);
        self.note(&said);
        self.take(port, events);
        said
    }

    fn take(&mut self, port: u16, events: Vec<Event>) {
        for event in events {
            match event {
                Event::Response { cookie, payload, .. } => {
                    self.cores.get_mut(&port).unwrap().transport.payload_consumed(payload.len());
                    let (response, whole) = &self.responses[&cookie];
                    assert!(*whole && payload == response[..], "RPC {cookie}: as it was sent");
                    assert!(self.done.insert(cookie), "RPC {cookie} ends once");
                }
                Event::Failed { error, .. } => {
                    assert_eq!(error.kind, FailureKind::PortClosed);
                    self.refused += 1;
                }
                _ => {}
            }
        }
    }

    /// Makes the call that the recorded client makes.
    fn call(&mut self, index: usize) {
        let recorded = &self.recording.packets[index];
        let Some(packet) = recorded.packet() else { return };
        let id = recorded.id().unwrap();
        let (port, server) = (packet.header.sport, packet.header.dport);
        // Calls that started before the recording are skipped. Payload beyond the end of the
        // recording is unknown, and replaced by zeros.
        let begins = recorded.data().is_some_and(|(data, _)| data.offset == 0 && !data.retransmit);
        if !begins || self.ours.contains_key(&id) {
            return;
        }
        self.models.entry(server).or_insert_with(|| Module::new(server, SEGMENT, 2));
        let told = self.recording.knows_cutoffs(true);
        let core = self.cores.entry(port).or_insert_with(|| Core::new(port, SERVER, told));
        let call = Call {
            to: SocketAddr::new(SERVER, server),
            payload: self.requests[&id].0.clone().into(),
            cookie: id,
            deadline: None,
            idempotent: false,
        };
        let rpc = core.transport.call(Core::now(recorded.at), call).unwrap();
        self.ours.insert(id, core.transport.info_of(rpc).unwrap().id);
        core.tell(recorded.at);
        self.collect(recorded.at, port);
    }

    /// Delivers a packet of the recorded server.
    fn receive(&mut self, index: usize) {
        let recorded = &self.recording.packets[index];
        let Some(packet) = recorded.packet() else {
            let source = SocketAddr::new(SERVER, 0);
            for port in self.cores.keys().copied().collect::<Vec<_>>() {
                let core = self.cores.get_mut(&port).unwrap();
                let now = Core::now(recorded.at);
                core.transport.handle_unreachable(now, source, Unreachable::PortClosed);
                core.transport.handle_timeout(now);
                self.collect(recorded.at, port);
            }
            return;
        };
        let id = recorded.id().unwrap();
        let (Some(ours), port) = (self.ours.get(&id), packet.header.dport) else { return };
        match packet.body {
            Body::Grant(grant) => {
                let granted = self.granted.entry(id).or_default();
                *granted = grant.offset.max(*granted);
            }
            Body::Resend(resend) => {
                let granted = self.granted.entry(id).or_default();
                *granted = resend.end().max(*granted);
            }
            _ => {}
        }
        let mut bytes = recorded.bytes.clone().unwrap();
        bytes[20..28].copy_from_slice(&(ours | 1).to_be_bytes());
        self.cores.get_mut(&port).unwrap().receive(recorded.at, &bytes);
        let mut said = std::mem::take(&mut self.unanswered);
        said.extend(self.collect(recorded.at, port));
        if self.recording.is_asked_more(index) {
            // The recorded client answered both together.
            self.unanswered = said;
        } else {
            self.compare_answer(index, &said);
        }
    }

    /// Collects the packets of the core, with the ids of the recording.
    fn renamed(&self, said: &Said) -> Vec<u8> {
        let mut bytes = said.bytes.clone();
        let id = said.packet().header.sender_id.client_id();
        let recorded = self.recorded_id(id).expect("the core speaks of its calls alone");
        bytes[20..28].copy_from_slice(&recorded.to_be_bytes());
        bytes
    }

    fn recorded_id(&self, ours: u64) -> Option<u64> {
        self.ours.iter().find(|(_, id)| **id == ours).map(|(recorded, _)| *recorded)
    }

    fn note(&mut self, said: &[Said]) {
        for said in said {
            let packet = said.packet();
            let Some(id) = self.recorded_id(packet.header.sender_id.client_id()) else {
                // The first packet of a call, whose key is not available yet, is checked below.
                continue;
            };
            let granted = self.granted.get(&id).copied().unwrap_or(0);
            if let Some(module) = self.models.get_mut(&packet.header.dport) {
                verify(module, CLIENT, said, granted);
            }
            let Body::Data(data, payload) = &packet.body else { continue };
            if let Some(acked) = data.ack.and_then(|ack| self.recorded_id(ack.client_id)) {
                assert!(
                    self.done.contains(&acked),
                    "an ack follows a response (Rules for peers, item 9)"
                );
                self.acked.insert((id, acked));
            }
            if !data.retransmit {
                let piece = (id, data.offset, payload.len());
                let text = fixed(&self.renamed(said));
                assert_eq!(self.first.insert(piece, text), None, "{piece:?} leaves once");
            }
        }
    }

    /// Checks that NEED_ACK, RESEND and RPC_UNKNOWN are answered as by the recorded client.
    fn compare_answer(&self, index: usize, said: &[Said]) {
        let asked = &self.recording.packets[index];
        let answer = self.recording.answer_to(index);
        let wanted = match asked.kind() {
            Some(Kind::NeedAck) => vec![Kind::Ack, Kind::Resend],
            Some(Kind::Resend | Kind::RpcUnknown) => vec![Kind::Data, Kind::Busy],
            _ => return,
        };
        let theirs: BTreeSet<String> = answer
            .iter()
            .filter(|packet| packet.kind().is_some_and(|kind| wanted.contains(&kind)))
            .filter(|packet| packet.data().is_none_or(|(data, _)| data.retransmit))
            .map(|packet| fixed(packet.bytes.as_ref().unwrap()))
            .collect();
        let ours: BTreeSet<String> = said.iter().map(|said| fixed(&self.renamed(said))).collect();
        if !theirs.is_empty() {
            assert_eq!(ours, theirs, "{}: packet {index}, {asked:?}", self.recording.name);
        }
    }

    fn compare_first_transmissions(&self) {
        let one_at_a_time = ["small-100", "mid-10000", "large-500000"];
        for packet in self.recording.packets.iter().filter(|packet| packet.from_client) {
            let Some((data, piece)) = packet.first_time() else { continue };
            let id = piece.0;
            if !self.ours.contains_key(&id) {
                continue;
            }
            compare_first(packet, &data, piece, &self.first, self.granted.get(&id));
            // A client with one call at a time acknowledges it with the next one.
            if let Some(ack) = data.ack.filter(|ack| self.ours.contains_key(&ack.client_id))
                && one_at_a_time.contains(&self.recording.name.as_str())
            {
                assert!(self.acked.contains(&(id, ack.client_id)), "the ack of {piece:?}");
            }
        }
    }

    /// Checks that every completely recorded response was received, and that every possible request
    /// was accepted by the model.
    fn check_deliveries(&mut self) {
        for (id, (_, whole)) in &self.responses {
            let called = self.ours.contains_key(id);
            assert!(!*whole || !called || self.done.contains(id), "RPC {id} is not answered");
        }
        let mut delivered = BTreeMap::new();
        for model in self.models.values_mut() {
            while let Some(event) = model.poll_event() {
                let kernel::ModuleEvent::Request { rpc, payload } = event else { continue };
                delivered.insert(rpc.id, payload);
            }
        }
        for (recorded, ours) in &self.ours {
            let request = &self.requests[recorded].0;
            let allowed = self.granted.get(recorded).copied().unwrap_or(0).max(kernel::UNSCHEDULED);
            match delivered.get(ours) {
                Some(payload) => assert_eq!(payload, &request[..], "RPC {recorded}"),
                None => assert!((allowed as usize) < request.len(), "RPC {recorded} is missing"),
            }
        }
    }
}
