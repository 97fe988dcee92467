//! The script language.
//!
//! We are one [`Transport`] at 10.0.0.1, port 1. Peers are called `P`, `Q`, `R`, … and live at
//! 10.0.1.x; what they send is written by the script. Our calls are named `c1`, `c2`, … in the order
//! of the script, their calls `s1`, `s2`, … by number.
//!
//! | line | meaning |
//! |---|---|
//! | `config NAME=VALUE …` | first line only: parameters that differ from the defaults |
//! | `meet P` | P and we have sessions with each other in both directions; nothing is printed |
//! | `call P 1000 [deadline=5ms] [idempotent]` | we call |
//! | `reply s1 500`, `abandon s1`, `cancel c1` | what the application does |
//! | `limit P 1288`, `link 1000`, `serving off`, `shutdown`, `unreachable P port` | housekeeping |
//! | `P: DATA s1 0..100/1000 unsched=500 …` | a packet from P; see [`Script::packet`] |
//! | `P: raw 00ff…` | bytes from P |
//! | `taking off`, `take 1000` | the application lets messages lie; takes so many bytes of them |
//! | `+5ms`, `+100us` | time passes; timers fire |
//! | `live` | prints what lives |
//! | `count GROUP.NAME …` | prints counters |
//!
//! Out come `-> P …` for packets, `!! …` for events, `xx …` for drops and `= …` for errors of
//! commands. Lines with `@` were caused by a timer at that time after the `+`.

use apus_proto::{
    Call, Command, Config, DropReason, Event, Instant, Kind, Payload, Profile, RpcId, Transport,
    Unreachable,
};
use apus_wire::{
    Ack, AckList, Body, Cutoffs, Data, Dialect, EVERYTHING, Flags, Grant, Header, HeaderBuffer,
    KernelFields, MAX_HEADER_LEN, Packet, Refusal, Resend, Role, SenderId, UdpFields,
};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;

/// Our Homa port.
const OUR_PORT: u16 = 1;
/// Session in which every peer serves us unless the script says otherwise.
const THEIR_SESSION: u32 = 77;

/// Runs a script and returns its transcript.
pub(crate) fn run(text: &str) -> String {
    let mut script = Script::new(text);
    for line in text.lines().map(str::trim) {
        let line = line.split('#').next().unwrap_or("").trim();
        if !line.is_empty() && !line.starts_with("config") {
            script.line(line);
        }
    }
    script.out.trim_end().to_owned()
}

struct Script {
    transport: Transport,
    profile: Profile,
    now: Instant,
    out: String,
    /// Our calls: name at our end, id on the wire, server. Ids are per server.
    calls: Vec<(RpcId, u64, char)>,
    /// Requests that the application has, by the peer's number.
    requests: BTreeMap<u64, RpcId>,
    /// The session that we gave each peer.
    sessions: BTreeMap<char, u32>,
    drops: Vec<u64>,
    /// Whether the application takes messages as soon as they are there.
    taking: bool,
    quiet: bool,
}

impl Script {
    fn new(text: &str) -> Self {
        let mut builder = Config::builder();
        for line in text.lines().map(str::trim).filter(|line| line.starts_with("config")) {
            for (name, value) in line.split_whitespace().skip(1).map(key_value) {
                builder = match (name, value) {
                    ("profile", "kernel") => builder.profile(Profile::Kernel),
                    _ => builder.set(name, value.parse().unwrap()).unwrap(),
                };
            }
        }
        let config = builder.build().unwrap();
        let profile = config.profile();
        Self {
            transport: Transport::new(config, OUR_PORT, 1),
            profile,
            now: Instant::from_nanos(1_000_000_000),
            out: String::new(),
            calls: Vec::new(),
            requests: BTreeMap::new(),
            sessions: BTreeMap::new(),
            drops: vec![0; DropReason::ALL.len()],
            taking: true,
            quiet: false,
        }
    }

    fn line(&mut self, line: &str) {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        if words[0] != "meet" {
            self.print(format_args!("> {line}"));
        }
        let first = words.remove(0);
        match first {
            "call" => self.call(&words),
            "reply" => {
                let (rpc, payload) = (self.request(words[0]), content(number(words[1])));
                self.command(Command::Reply { rpc, payload });
            }
            "abandon" => self.command(Command::Abandon { rpc: self.request(words[0]) }),
            "cancel" => self.command(Command::Cancel { rpc: self.our_call(words[0]).0 }),
            "meet" => self.meet(words[0]),
            "limit" => {
                self.transport.set_packet_limit(address(words[0]), number(words[1]) as usize);
            }
            "link" => self.transport.set_link_rate(number(words[0]) as u32),
            "taking" => self.taking = words[0] == "on",
            "take" => self.transport.taken(number(words[0]) as usize),
            "serving" => self.transport.set_serving(words[0] == "on"),
            "shutdown" => self.transport.shut_down(self.now),
            "unreachable" => {
                let trouble = match words[1] {
                    "port" => Unreachable::PortClosed,
                    "protocol" => Unreachable::Protocol,
                    "host" => Unreachable::Host,
                    _ => Unreachable::NotPermitted,
                };
                self.transport.handle_unreachable(self.now, address(words[0]), trouble);
                self.fire("");
            }
            "live" => self.print_live(),
            "count" => self.print_counters(&words),
            time if time.starts_with('+') => self.advance(time),
            peer if peer.ends_with(':') => self.receive(peer.trim_end_matches(':'), &words),
            other => panic!("no such line: {other}"),
        }
        self.drain("");
    }

    fn call(&mut self, words: &[&str]) {
        let mut call = Call {
            to: address(words[0]),
            payload: content(number(words[1])),
            cookie: 0,
            deadline: None,
            idempotent: false,
        };
        for word in &words[2..] {
            match key_value(word) {
                ("deadline", time) => call.deadline = Some(self.now.plus(nanos(time))),
                ("idempotent", _) => call.idempotent = true,
                (other, _) => panic!("no such option: {other}"),
            }
        }
        let call_to = call.to;
        match self.transport.command(self.now, Command::Call(call)) {
            Ok(rpc) => {
                let info = self.transport.info();
                let id = info.iter().find(|info| info.rpc == rpc).unwrap().id;
                self.calls.push((rpc, id, name(call_to)));
            }
            Err(error) => self.print(format_args!("  = {error}")),
        }
    }

    fn command(&mut self, command: Command) {
        if let Err(error) = self.transport.command(self.now, command) {
            self.print(format_args!("  = {error}"));
        }
    }

    /// Both directions of a first contact, without a word.
    fn meet(&mut self, peer: &str) {
        assert_eq!(self.profile, Profile::Udp, "the kernel profile has no sessions");
        self.quiet = true;
        self.line(&format!("{peer}: DATA s900 0..1/1"));
        self.line(&format!("{peer}: BUSY s900 +CONFIRM"));
        self.line("reply s900 1");
        self.line(&format!("{peer}: ACK s900"));
        self.line(&format!("call {peer} 1"));
        let call = format!("c{}", self.calls.len());
        self.line(&format!("{peer}: NEED_ACK {call} +CONFIRM"));
        self.line(&format!("{peer}: DATA {call} 0..1/1 cutoffs=1"));
        self.line(&format!("{peer}: CUTOFFS {call} 1"));
        // A server that does not know the call takes the pending ack out of the buffer.
        self.line(&format!("{peer}: NEED_ACK {call}"));
        self.calls.clear();
        self.requests.clear();
        self.quiet = false;
    }

    fn advance(&mut self, time: &str) {
        let start = self.now;
        let end = start.plus(nanos(&time[1..]));
        let mut rounds = 0;
        while let Some((at, _)) = self.transport.next_timeout() {
            if at > end {
                break;
            }
            rounds += 1;
            assert!(rounds < 100_000, "timers do not come to rest");
            self.now = self.now.max(at);
            let since = self.now.since(start) as f64 / 1e6;
            self.fire(&format!("@{since:.2}ms "));
        }
        self.now = end;
    }

    fn fire(&mut self, when: &str) {
        self.transport.handle_timeout(self.now);
        self.drain(when);
    }

    /// Prints all that comes out.
    fn drain(&mut self, when: &str) {
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
            assert_eq!(transmit.traffic_class(), priority << 5, "PRIO-10, row P-25");
            let mut bytes = headers[..len].to_vec();
            bytes.extend_from_slice(&payload[..payload.len().min(segment)]);
            let text = self.describe_packet(name(to), &bytes, payload.len(), packets, priority);
            self.check_headers(&headers, len, segment);
            check_content(&bytes, &payload);
            self.print(format_args!("  {when}-> {} {text}", name(to)));
        }
        self.print_drops(when);
    }

    /// The headers of a burst differ in their offset, and only the first has an ack (row P-3).
    fn check_headers(&self, headers: &[u8], len: usize, segment: usize) {
        let first = parse_offset(self.profile, &headers[..len]);
        for (i, header) in headers.chunks(len).enumerate().skip(1) {
            let (offset, ack) = parse_offset(self.profile, header);
            assert_eq!(offset as usize, first.0 as usize + i * segment);
            assert_eq!(ack, None);
        }
    }

    /// The application takes a message, if it does that at once.
    fn take(&mut self, bytes: usize) {
        if self.taking {
            self.transport.taken(bytes);
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
                assert_eq!(header.sequence, data.offset, "row P-2");
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
            Body::Resend(resend) => write!(text, " {}..{}", resend.offset, resend.end()).unwrap(),
            Body::Cutoffs(cutoffs) => {
                write!(text, " v{} {:?}", cutoffs.version, cutoffs.unscheduled).unwrap();
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

    /// Flags, and what else is unusual; remembers the sessions that we propose.
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
        if id.sender() == Role::Client && session && fields.incarnation != THEIR_SESSION {
            write!(text, " session={}", fields.incarnation).unwrap();
        }
        if id.sender() == Role::Server && session {
            self.sessions.insert(to, fields.incarnation);
        }
    }

    /// A packet from a peer: kind, RPC, then by kind
    ///
    /// - `DATA s1 0..100/1000`, `unsched=500` (default: all), `retransmit`, `ack=c3`, `cutoffs=1`,
    ///   `length=…` to lie
    /// - `GRANT c1 5000 level=3`, `RESEND c1 0..100` or `everything`, `CUTOFFS c1 VERSION`
    /// - `ACK s1 s2 …`, `NEED_ACK c1`, `BUSY c1`, `RPC_UNKNOWN c1`, `FREEZE c1`
    ///
    /// and, in the udp profile, `+CONFIRM`, `+FINISHED`, `+REFUSED=2`, `session=5` (another than the
    /// one that belongs there), `inc=5` (a client without a session), `low=3` (low-water distance),
    /// `dport=9`.
    fn receive(&mut self, peer: &str, words: &[&str]) {
        let from = address(peer);
        if words[0] == "raw" {
            let hex = words[1..].concat();
            let bytes: Vec<u8> = (0..hex.len() / 2)
                .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
                .collect();
            self.transport.handle_packet(self.now, from, &bytes);
            return;
        }
        let bytes = self.packet(peer, words);
        self.transport.handle_packet(self.now, from, &bytes);
    }

    fn packet(&mut self, peer: &str, words: &[&str]) -> Vec<u8> {
        let peer_char = peer.chars().next().unwrap();
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == words[0]).unwrap();
        let sender_id = self.sender_id(peer, words[1]);
        let mut fields = self.fields(peer_char, sender_id, kind);
        let mut data = Data {
            message_length: 0,
            incoming: u32::MAX,
            ack: None,
            cutoff_version: 1,
            retransmit: false,
            offset: 0,
            offset_in_sequence: false,
        };
        let mut acks = AckList::EMPTY;
        let (mut range, mut level, mut version) = (None, 0, None);
        let (mut sequence, mut dport) = (0, OUR_PORT);
        for word in &words[2..] {
            match key_value(word) {
                ("unsched", n) => data.incoming = n.parse().unwrap(),
                ("retransmit", _) => data.retransmit = true,
                ("ack", rpc) => {
                    let client_id = self.sender_id(peer, rpc).client_id();
                    data.ack = Some(Ack { client_id, server_port: OUR_PORT });
                }
                ("cutoffs", n) => data.cutoff_version = n.parse().unwrap(),
                ("level", n) => level = n.parse().unwrap(),
                ("everything", _) => range = Some((0, EVERYTHING)),
                ("+CONFIRM", _) => fields.flags = fields.flags.with(Flags::CONFIRM),
                ("+FINISHED", _) => fields.flags = fields.flags.with(Flags::FINISHED),
                ("+REFUSED", n) => {
                    fields.flags = fields.flags.with(Flags::REFUSED);
                    sequence = n.parse().unwrap();
                }
                ("session", n) => {
                    let flags = fields.flags.with(Flags::SESSION);
                    fields = UdpFields { flags, incarnation: n.parse().unwrap(), ..fields };
                }
                ("inc", n) => {
                    let flags = Flags::from_bits(fields.flags.bits() & !Flags::SESSION.bits());
                    fields = UdpFields { flags, incarnation: n.parse().unwrap(), ..fields };
                }
                ("low", n) => fields.low_water = n.parse().unwrap(),
                ("dport", n) => dport = n.parse().unwrap(),
                (rpc, _) if kind == Kind::Ack => {
                    let client_id = self.sender_id(peer, rpc).client_id();
                    acks.push(Ack { client_id, server_port: OUR_PORT }).unwrap();
                }
                (text, _) if text.contains("..") => {
                    let (span, length) = text.split_once('/').unwrap_or((text, "0"));
                    let (start, end) = span.split_once("..").unwrap();
                    let (start, end) = (start.parse::<u32>().unwrap(), end.parse::<u32>().unwrap());
                    range = Some((start, end - start));
                    data.message_length = length.parse().unwrap();
                }
                (text, _) => version = Some(text.parse::<u32>().unwrap()),
            }
        }
        let (start, length) = range.unwrap_or((0, 0));
        data.offset = start;
        data.incoming = data.incoming.min(data.message_length);
        let payload = if kind == Kind::Data { bytes_of(start, length) } else { Vec::new() };
        let body = match kind {
            Kind::Data => Body::Data(data, &payload),
            Kind::Grant => Body::Grant(Grant { offset: version.unwrap(), priority: level }),
            Kind::Resend => Body::Resend(Resend { offset: start, length, priority: 7 }),
            Kind::RpcUnknown => Body::RpcUnknown,
            Kind::Busy => Body::Busy,
            Kind::Cutoffs => {
                let unscheduled = [0, 0, 0, 0, 1_000_000, 15_000, 2_800, 200];
                Body::Cutoffs(Cutoffs { unscheduled, version: version.unwrap() as u16 })
            }
            Kind::Freeze => Body::Freeze,
            Kind::NeedAck => Body::NeedAck,
            Kind::Ack => Body::Ack(acks),
        };
        let dialect = match self.profile {
            Profile::Udp => Dialect::Udp(fields),
            Profile::Kernel => Dialect::Kernel(KernelFields::OURS),
        };
        let sport = address(peer).port();
        let mut header = Header::new(kind, sport, dport, sender_id, dialect);
        header.sequence = if kind == Kind::Data { start } else { sequence };
        let mut buffer: HeaderBuffer = [0; MAX_HEADER_LEN];
        let len = Packet { header, body }.emit_header(&mut buffer);
        [&buffer[..len], &payload].concat()
    }

    /// What a peer that follows the protocol writes into its headers.
    fn fields(&mut self, peer: char, id: SenderId, kind: Kind) -> UdpFields {
        let server = id.sender() == Role::Server;
        if server {
            let flags = Flags::SESSION;
            let low_water = UdpFields::LOW_WATER_UNKNOWN;
            return UdpFields { flags, incarnation: THEIR_SESSION, low_water };
        }
        let low_water = UdpFields::LOW_WATER_UNKNOWN;
        match self.sessions.get(&peer) {
            Some(session) if kind != Kind::Freeze => {
                UdpFields { flags: Flags::SESSION, incarnation: *session, low_water }
            }
            _ => UdpFields { flags: Flags::NONE, incarnation: u32::from(peer), low_water },
        }
    }

    /// `c1`: our call, the peer is its server. `s1`: a call of the peer.
    fn sender_id(&self, peer: &str, rpc: &str) -> SenderId {
        let number: u64 = rpc[1..].parse().unwrap();
        if rpc.starts_with('c') {
            let id =
                self.calls.get(number as usize - 1).map_or(5_000 + 2 * number, |(_, id, _)| *id);
            SenderId::new(id, Role::Server)
        } else {
            let base = match peer {
                "P" => 10_000,
                "Q" => 20_000,
                _ => 30_000,
            };
            SenderId::new(base + 2 * number, Role::Client)
        }
    }

    /// How an RPC is called in the transcript, going by a packet of ours to `peer`.
    fn id_name(&self, peer: char, id: u64, ours: Role) -> String {
        match ours {
            Role::Client => {
                let ours = |call: &(RpcId, u64, char)| call.1 == id && call.2 == peer;
                match self.calls.iter().position(ours) {
                    Some(at) => format!("c{}", at + 1),
                    None => format!("c?{}", if id < 10_000 { (id - 5_000) / 2 } else { 0 }),
                }
            }
            Role::Server => format!("s{}", id % 10_000 / 2),
        }
    }

    fn call_name(&self, rpc: RpcId) -> String {
        let at = self.calls.iter().position(|(call, ..)| *call == rpc);
        at.map_or("c?".into(), |at| format!("c{}", at + 1))
    }

    fn our_call(&self, name: &str) -> (RpcId, u64, char) {
        self.calls[name[1..].parse::<usize>().unwrap() - 1]
    }

    fn request(&self, name: &str) -> RpcId {
        self.requests[&name[1..].parse::<u64>().unwrap()]
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

    fn print_live(&mut self) {
        let live = self.transport.metrics().live;
        let text = format!(
            "  clients={} servers={} peers={} send={} receive={} unconfirmed={} grantable={} \
             incoming={} sendable={} timers={} control={}",
            live.client_rpcs,
            live.server_rpcs,
            live.peers,
            live.send_bytes,
            live.receive_bytes,
            live.unconfirmed_bytes,
            live.grantable,
            live.incoming_bytes,
            live.sendable,
            live.timers,
            live.control_packets,
        );
        self.print(format_args!("{text}"));
    }

    fn print_counters(&mut self, names: &[&str]) {
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

    fn print(&mut self, text: std::fmt::Arguments<'_>) {
        if !self.quiet {
            writeln!(self.out, "{text}").unwrap();
        }
    }
}

/// Payload of our messages and of the peers': byte `i` is a function of `i`, so that a byte in the
/// wrong place is seen.
fn bytes_of(start: u32, length: u32) -> Vec<u8> {
    (start..start.saturating_add(length)).map(|i| (i % 251) as u8).collect()
}

fn content(length: u64) -> Payload {
    // Two slices, so that packets begin in one and end in the other.
    let bytes = Bytes::from(bytes_of(0, length as u32));
    let half = bytes.len() / 3;
    Payload::from([bytes.slice(..half), bytes.slice(half..)])
}

fn assert_content(bytes: &[u8], offset: usize) {
    for (i, byte) in bytes.iter().enumerate() {
        assert_eq!(usize::from(*byte), (offset + i) % 251, "byte {}", offset + i);
    }
}

/// The payload of a DATA packet of ours is what stands at its offset.
fn check_content(first: &[u8], payload: &[u8]) {
    if first.len() > apus_wire::DATA_HEADER_LEN && first[11] == Kind::Data as u8 {
        let offset = u32::from_be_bytes(first[52..56].try_into().unwrap());
        assert_content(payload, offset as usize);
    }
}

fn parse_offset(profile: Profile, header: &[u8]) -> (u32, Option<Ack>) {
    let padded = [header, &[0]].concat();
    match Packet::parse(profile, &padded).map(|packet| packet.body) {
        Ok(Body::Data(data, _)) => (data.offset, data.ack),
        _ => (0, None),
    }
}

fn address(peer: &str) -> SocketAddr {
    let letter = peer.bytes().next().unwrap();
    SocketAddr::from(([10, 0, 1, letter], u16::from(letter)))
}

fn name(address: SocketAddr) -> char {
    match address {
        SocketAddr::V4(address) => char::from(address.ip().octets()[3]),
        SocketAddr::V6(_) => '?',
    }
}

fn key_value(word: &str) -> (&str, &str) {
    word.split_once('=').unwrap_or((word, ""))
}

fn number(word: &str) -> u64 {
    word.replace('_', "").parse().unwrap()
}

fn nanos(time: &str) -> u64 {
    let split = time.find(|c: char| c.is_alphabetic()).unwrap();
    let value: f64 = time[..split].parse().unwrap();
    let unit = match &time[split..] {
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        other => panic!("no such unit: {other}"),
    };
    (value * unit) as u64
}
