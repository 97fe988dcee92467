//! Replay of a recorded server: the recorded client calls, and the core responds.

use std::collections::{BTreeMap, BTreeSet};

use apus_proto::{Event, RpcKey};
use apus_sim::kernel::{self, Module};
use apus_wire::{Body, Kind};
use bytes::Bytes;

use crate::core::{Core, SEGMENT, Said, compare_first, fixed, verify};
use crate::recording::{CLIENT, Piece, Recording, SERVER};

/// Possible answers to a RESEND.
const ANSWERS: [Kind; 3] = [Kind::Data, Kind::Busy, Kind::RpcUnknown];

/// The replayed server.
const PORT: u16 = 4_100;

struct Play<'a> {
    recording: &'a Recording,
    core: Core,
    /// One core for each of the client's ports.
    models: BTreeMap<u16, Module>,
    requests: BTreeMap<u64, (Vec<u8>, bool)>,
    /// Granted offset of each response.
    granted: BTreeMap<u64, u32>,
    /// Requests that await their response, and when the recorded server sent it.
    pending: Vec<(u64, RpcKey, Bytes)>,
    /// Packets of the core, by their contents; each may be sent several times.
    first: BTreeMap<Piece, String>,
    served: usize,
    /// Answers of the core to the first of several requests that arrived together.
    unanswered: Vec<Said>,
    replied: BTreeSet<u64>,
}

/// Replays the recording, and returns how many requests were served.
pub(crate) fn play(recording: &Recording) -> usize {
    let mut play = Play {
        recording,
        core: Core::new(PORT, CLIENT, recording.knows_cutoffs(false)),
        models: BTreeMap::new(),
        requests: recording.messages(true),
        granted: BTreeMap::new(),
        pending: Vec::new(),
        first: BTreeMap::new(),
        served: 0,
        unanswered: Vec::new(),
        replied: BTreeSet::new(),
    };
    let lost = recording.lost();
    for (index, recorded) in recording.packets.iter().enumerate() {
        play.pass(recorded.at);
        let Some(bytes) = recorded.bytes.as_ref().filter(|_| recorded.from_client) else {
            continue;
        };
        play.make_recorded_calls(index);
        if !lost.contains(&index) {
            play.core.receive(recorded.at, bytes);
            let mut said = std::mem::take(&mut play.unanswered);
            said.extend(play.collect(recorded.at));
            if recording.is_asked_more(index) {
                // The recorded server answered both together.
                play.unanswered = said;
            } else {
                play.compare_answer(index, &said);
            }
        }
    }
    play.compare_first_transmissions();
    play.check_deliveries();
    play.served
}

impl Play<'_> {
    fn pass(&mut self, until: u64) {
        let mut events = Vec::new();
        let said = self.core.pass(until, &mut events);
        self.note(&said);
        self.serve(until, events);
        let due = |(at, ..): &(u64, RpcKey, Bytes)| *at <= until;
        let (now, later) = std::mem::take(&mut self.pending).into_iter().partition(due);
        self.pending = later;
        for (at, rpc, payload) in now as Vec<(u64, RpcKey, Bytes)> {
            self.reply(at, rpc, payload);
        }
    }

    /// Collects the packets that the core sends at once.
    fn collect(&mut self, at: u64) -> Vec<Said> {
        let mut events = Vec::new();
        let said = self.core.drain(at, &mut events);
        self.note(&said);
        self.serve(at, events);
        said
    }

    /// Handles requests as the application: answers at the recorded time, or at once if that is
    /// unknown.
    fn serve(&mut self, now: u64, events: Vec<Event>) {
        for event in events {
            let Event::Request { rpc, payload, .. } = event else { continue };
            self.core.transport.payload_consumed(payload.len());
            let id = self.core.transport.info_of(rpc).unwrap().id;
            let (request, whole) = &self.requests[&id];
            assert!(*whole && payload == request[..], "RPC {id}: the request as it was sent");
            self.served += 1;
            let answers = self.recording.packets.iter().filter(|packet| !packet.from_client);
            let mut answers = answers.filter(|packet| packet.id() == Some(id));
            // If the first recorded one is a repetition, the response was sent before.
            let begins = answers.find(|packet| packet.data().is_some());
            let begins =
                begins.filter(|packet| packet.data().is_some_and(|(data, _)| !data.retransmit));
            let at = begins.map_or(now, |packet| packet.at);
            if at <= now {
                self.reply(now, rpc, payload);
            } else {
                self.pending.push((at, rpc, payload));
            }
        }
    }

    fn reply(&mut self, at: u64, rpc: RpcKey, payload: Bytes) {
        let id = self.core.transport.info_of(rpc).map(|info| info.id);
        self.core.transport.reply(Core::now(at), rpc, payload.into()).unwrap();
        self.replied.extend(id);
        let mut events = Vec::new();
        let said = self.core.drain(at, &mut events);
        self.note(&said);
        self.serve(at, events);
    }

    /// The model is the client: it has made the recorded calls, and receives only the core's
    /// packets.
    fn make_recorded_calls(&mut self, index: usize) {
        let recorded = &self.recording.packets[index];
        let (packet, id) = (recorded.packet().unwrap(), recorded.id().unwrap());
        match packet.body {
            Body::Data(..) if packet.header.dport == PORT => {
                let port = packet.header.sport;
                let fresh = || Module::new(PORT, SEGMENT, 2).calling_from(port);
                let model = self.models.entry(port).or_insert_with(fresh);
                let named =
                    kernel::ModuleRpcKey { peer: SERVER, id, role: apus_wire::Role::Client };
                let known = model.live().any(|name| name == named) || self.replied.contains(&id);
                if !known {
                    model.set_next_id(id);
                    let request = self.requests[&id].0.clone().into();
                    model.call(recorded.at, (SERVER, PORT), request, id, None);
                    while model.transmit(recorded.at).is_some() {}
                }
            }
            Body::Grant(grant) => {
                let granted = self.granted.entry(id).or_default();
                *granted = grant.offset.max(*granted);
            }
            _ => {}
        }
    }

    /// Verifies all packets of the core, and keeps first transmissions.
    fn note(&mut self, said: &[Said]) {
        for said in said {
            let packet = said.packet();
            let id = packet.header.sender_id.client_id();
            let granted = self.granted.get(&id).copied().unwrap_or(0);
            if let Some(module) = self.models.get_mut(&packet.header.dport) {
                verify(module, SERVER, said, granted);
            }
            if let Body::Data(data, payload) = &packet.body
                && !data.retransmit
            {
                let piece = (id, data.offset, payload.len());
                let before = self.first.insert(piece, fixed(&said.bytes));
                assert_eq!(before, None, "{piece:?} leaves for the first time once");
            }
        }
    }

    /// Compares the core's immediate answers to the client: RESEND is answered with the same kind
    /// of packet, and with the same bytes.
    fn compare_answer(&self, index: usize, said: &[Said]) {
        let asked = &self.recording.packets[index];
        let answer = self.recording.answer_to(index);
        if asked.kind() != Some(Kind::Resend) || answer.is_empty() {
            return;
        }
        let id = asked.id().unwrap();
        let ours: BTreeSet<String> = said
            .iter()
            .filter(|said| said.packet().header.sender_id.client_id() == id)
            .filter(|said| ANSWERS.contains(&said.packet().body.kind()))
            .map(|said| fixed(&said.bytes))
            .collect();
        let theirs: BTreeSet<String> = answer
            .iter()
            .take_while(|packet| packet.data().is_none_or(|(data, _)| data.retransmit))
            .filter(|packet| packet.kind().is_some_and(|kind| ANSWERS.contains(&kind)))
            .map(|packet| fixed(packet.bytes.as_ref().unwrap()))
            .collect();
        if !theirs.is_empty() {
            assert_eq!(ours, theirs, "{}: packet {index}, {asked:?}", self.recording.name);
        }
    }

    /// Checks that the core sent every first transmission of the recorded server, unchanged.
    fn compare_first_transmissions(&self) {
        let recorded = self.recording.packets.iter().filter(|packet| !packet.from_client);
        for packet in recorded {
            let Some((data, piece)) = packet.first_time() else { continue };
            let id = piece.0;
            if !self.replied.contains(&id) {
                // Its request was not recorded.
                continue;
            }
            compare_first(packet, &data, piece, &self.first, self.granted.get(&id));
        }
    }

    /// Checks that the model received every response that the core was allowed to send completely.
    fn check_deliveries(&mut self) {
        let mut delivered = BTreeMap::new();
        for model in self.models.values_mut() {
            while let Some(event) = model.poll_event() {
                let kernel::ModuleEvent::Response { cookie, payload } = event else { continue };
                delivered.insert(cookie, payload);
            }
        }
        for id in &self.replied {
            let request = &self.requests[id].0;
            let allowed = self.granted.get(id).copied().unwrap_or(0).max(kernel::UNSCHEDULED);
            match delivered.get(id) {
                Some(response) => assert_eq!(response, &request[..], "RPC {id}: an echo"),
                None => assert!((allowed as usize) < request.len(), "RPC {id} is not delivered"),
            }
        }
    }
}
