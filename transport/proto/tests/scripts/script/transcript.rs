//! The transcript of the transport's outputs.

use super::content::{assert_content, check_content};
use super::words::name;
use super::{Script, THEIR_SESSION};
use apus_proto::{DropReason, Event, Profile, RpcKey};
use apus_wire::{Ack, Body, EVERYTHING, Flags, Packet, Refusal, Role, SenderId, UdpFields};
use std::fmt::Write;

impl Script {
    /// Prints all outputs.
    pub(super) fn drain(&mut self, when: &str) {
        self.print_drops(when);
        while let Some(event) = self.transport.poll_event() {
            let text = self.describe_event(event);
            if let Some(text) = text {
                self.print(format_args!("  {when}!! {text}"));
            }
        }
        while let Some(transmit) = self.transport.poll_transmit(self.now) {
            let to = transmit.to();
            let headers = transmit.headers().to_vec();
            let (packets, len) = (transmit.packets(), transmit.header_len());
            assert_eq!(headers.len(), packets * len);
            let payload: Vec<u8> = transmit.payload().flatten().copied().collect();
            let (segment, priority) = (transmit.segment(), transmit.priority());
            let shares = match transmit.coalesce() {
                0 => String::new(),
                longest => format!(" shares={longest}"),
            };
            assert_eq!(transmit.traffic_class(), priority << 5, "PRIO-10");
            let mut bytes = headers[..len].to_vec();
            bytes.extend_from_slice(&payload[..payload.len().min(segment)]);
            let text = self.describe_packet(name(to), &bytes, payload.len(), packets, priority);
            self.check_headers(&headers, len, segment);
            check_content(&bytes, &payload);
            self.print(format_args!("  {when}-> {} {text}{shares}", name(to)));
        }
        self.print_drops(when);
    }

    /// The headers of a burst differ in their offset, and only the first has an ack
    /// (HM `homa_outgoing.c` `homa_tx_data_pkt_alloc`).
    fn check_headers(&self, headers: &[u8], len: usize, segment: usize) {
        let first = parse_offset(self.profile, &headers[..len]);
        for (i, header) in headers.chunks(len).enumerate().skip(1) {
            let (offset, ack) = parse_offset(self.profile, header);
            assert_eq!(offset as usize, first.0 as usize + i * segment);
            assert_eq!(ack, None);
        }
    }

    fn describe_event(&mut self, event: Event) -> Option<String> {
        match event {
            Event::NewPeer(_) => None,
            Event::Room => Some("room".into()),
            Event::Request { rpc, payload, from } => {
                let info = self.transport.info();
                let id = info.iter().find(|info| info.rpc == rpc).unwrap().id;
                let number = id % 10_000 / 2;
                self.requests.insert(number, rpc);
                self.take(payload.len());
                assert_content(&payload, 0);
                Some(format!("request s{number} from {}: {} B", name(from), payload.len()))
            }
            Event::Response { rpc, payload, .. } => {
                self.take(payload.len());
                assert_content(&payload, 0);
                Some(format!("response {}: {} B", self.call_name(rpc), payload.len()))
            }
            Event::Failed { rpc, error, .. } => {
                Some(format!("failed {}: {error}", self.call_name(rpc)))
            }
            Event::ClientGone { rpc } => {
                let named = self.requests.iter().find(|(_, known)| **known == rpc);
                named.map(|(number, _)| format!("client gone: s{number}"))
            }
            other => panic!("unknown event {other:?}"),
        }
    }

    fn describe_packet(
        &mut self,
        to: char,
        bytes: &[u8],
        payload: usize,
        packets: usize,
        priority: u8,
    ) -> String {
        let packet = Packet::parse(self.profile, bytes).unwrap();
        let header = packet.header;
        let rpc = self.id_name(to, header.sender_id.client_id(), header.sender_id.sender());
        let mut text = format!("{} {rpc}", packet.body.kind());
        match packet.body {
            Body::Data(data, _) => {
                assert_eq!(header.sequence, data.offset, "WIRE-10");
                let end = data.offset as usize + payload;
                write!(text, " {}..{end}/{}", data.offset, data.message_length).unwrap();
                if data.incoming != data.message_length {
                    write!(text, " incoming={}", data.incoming).unwrap();
                }
                if packets > 1 {
                    write!(text, " packets={packets}").unwrap();
                }
                if data.cutoff_version != 0 {
                    write!(text, " cutoffs={}", data.cutoff_version).unwrap();
                }
                if data.retransmit {
                    text.push_str(" retransmit");
                }
                if let Some(ack) = data.ack {
                    write!(text, " ack={}", self.id_name(to, ack.client_id, Role::Client)).unwrap();
                }
            }
            Body::Grant(grant) => {
                write!(text, " {} level={}", grant.offset, grant.priority).unwrap();
            }
            Body::Resend(resend) if resend.length == EVERYTHING => text.push_str(" everything"),
            Body::Resend(resend) => {
                let brief = if resend.brief { " brief" } else { "" };
                write!(text, " {}..{}{brief}", resend.offset, resend.end()).unwrap();
            }
            Body::Cutoffs(cutoffs) => {
                write!(text, " v{} {:?}", cutoffs.version, cutoffs.unscheduled).unwrap();
                if header.sequence > 0 {
                    write!(text, " room={}", header.sequence).unwrap();
                }
            }
            Body::Ack(list) => {
                for ack in list.iter() {
                    write!(text, " {}", self.id_name(to, ack.client_id, Role::Client)).unwrap();
                }
            }
            _ => {}
        }
        if let Some(fields) = header.udp() {
            self.describe_fields(&mut text, to, header.sender_id, fields, header.sequence);
        }
        write!(text, " prio={priority}").unwrap();
        text
    }

    /// Flags, and everything unusual; remembers the sessions that we offer.
    fn describe_fields(
        &mut self,
        text: &mut String,
        to: char,
        id: SenderId,
        fields: &UdpFields,
        seq: u32,
    ) {
        for (flag, name) in [
            (Flags::CONFIRM, "CONFIRM"),
            (Flags::FINISHED, "FINISHED"),
            (Flags::REFUSED, "REFUSED"),
        ] {
            if fields.flags.contains(flag) {
                write!(text, " +{name}").unwrap();
            }
        }
        if fields.flags.contains(Flags::REFUSED) {
            write!(text, "({:?})", Refusal::from_wire(seq)).unwrap();
        }
        let session = fields.flags.contains(Flags::SESSION);
        if id.sender() == Role::Client && !session {
            text.push_str(" new");
        }
        let ours = |offer: &Vec<(u64, u32)>| offer.iter().any(|(s, _)| *s == fields.incarnation);
        let known = fields.incarnation == THEIR_SESSION || self.sessions.get(&to).is_some_and(ours);
        let offers = fields.flags.contains(Flags::CONFIRM) && id.sender() == Role::Server;
        if session && !known && !offers {
            write!(text, " session={}", fields.incarnation).unwrap();
        }
        if id.sender() == Role::Server && fields.flags.contains(Flags::SESSION.with(Flags::CONFIRM))
        {
            let offer = (fields.incarnation, fields.low_water);
            let offers = self.sessions.entry(to).or_default();
            if offers.last() != Some(&offer) {
                offers.push(offer);
            }
        }
        if id.sender() == Role::Client {
            self.claims.insert(to, UdpFields::claim(fields.incarnation));
        }
    }

    /// How an RPC is called in the transcript, going by a packet of ours to `peer`.
    fn id_name(&self, peer: char, id: u64, ours: Role) -> String {
        match ours {
            Role::Client => {
                let ours = |call: &(RpcKey, u64, char)| call.1 == id && call.2 == peer;
                match self.calls.iter().position(ours) {
                    Some(at) => format!("c{}", at + 1),
                    None => format!("c?{}", if id < 10_000 { (id - 5_000) / 2 } else { 0 }),
                }
            }
            Role::Server => format!("s{}", id % 10_000 / 2),
        }
    }

    fn call_name(&self, rpc: RpcKey) -> String {
        let at = self.calls.iter().position(|(call, ..)| *call == rpc);
        at.map_or("c?".into(), |at| format!("c{}", at + 1))
    }

    fn print_drops(&mut self, when: &str) {
        let metrics = self.transport.metrics();
        for (i, reason) in DropReason::ALL.iter().enumerate() {
            let count = metrics.dropped(*reason);
            for _ in self.drops[i]..count {
                self.print(format_args!("  {when}xx {}", reason.name()));
            }
            self.drops[i] = count;
        }
    }

    pub(super) fn print_live(&mut self) {
        let live = self.transport.metrics().live;
        let text = format!(
            "  clients={} servers={} peers={} send={} receive={} grantable={} \
             incoming={} sendable={} timers={} control={}",
            live.client_rpcs,
            live.server_rpcs,
            live.peers,
            live.send_bytes,
            live.receive_bytes,
            live.grantable,
            live.incoming_bytes,
            live.sendable,
            live.timers,
            live.control_packets,
        );
        self.print(format_args!("{text}"));
    }

    pub(super) fn print_senders(&mut self, most: usize) {
        let senders = self.transport.senders(most);
        self.print(format_args!("  {} of {}:", senders.first.len(), senders.count));
        for sender in senders.first {
            self.print(format_args!(
                "  {} messages={} credit={} used={} backlog={:?}{}",
                name(sender.peer),
                sender.messages,
                sender.credit,
                sender.credit_used,
                sender.reported_backlog,
                if sender.marks > 0 { format!(" marks={}", sender.marks) } else { String::new() },
            ));
        }
    }

    pub(super) fn print_counters(&mut self, names: &[&str]) {
        let metrics = self.transport.metrics();
        for name in names {
            let (_, value) = metrics
                .progress
                .iter()
                .chain(metrics.recovery.iter())
                .chain(metrics.scheduling.iter())
                .chain(metrics.admission.iter())
                .find(|(counter, _)| counter == name)
                .unwrap_or_else(|| panic!("no counter {name}"));
            self.print(format_args!("  {name}={value}"));
        }
    }

    pub(super) fn print(&mut self, text: std::fmt::Arguments<'_>) {
        if !self.quiet {
            writeln!(self.out, "{text}").unwrap();
        }
    }
}

fn parse_offset(profile: Profile, header: &[u8]) -> (u32, Option<Ack>) {
    let padded = [header, &[0]].concat();
    match Packet::parse(profile, &padded).map(|packet| packet.body) {
        Ok(Body::Data(data, _)) => (data.offset, data.ack),
        _ => (0, None),
    }
}
