//! The script language.
//!
//! We are one [`Transport`] at 10.0.0.1, port 1. Peers are called `P`, `Q`, `R`, … and live at
//! 10.0.1.x; the script writes their packets. Our calls are named `c1`, `c2`, … in the order of the
//! script, their calls `s1`, `s2`, … by number.
//!
//! | line | meaning |
//! |---|---|
//! | `config NAME=VALUE …` | first line only: parameters that differ from the defaults |
//! | `meet P` | P and the endpoint have sessions with each other in both directions; nothing is printed |
//! | `call P 1000 [deadline=5ms] [idempotent]` | the endpoint calls |
//! | `reply s1 500`, `abandon s1`, `watch s1`, `cancel c1` | what the application does |
//! | `deadline c1 5ms` | the application sets the deadline of a call, from now on |
//! | `limit P 1288`, `link 1000`, `serving off`, `shutdown`, `unreachable P port` | housekeeping |
//! | `buffer 8000000`, `begin_reading`, `finish_reading`, `overflow` | what the engine reports about the socket |
//! | `P: DATA s1 0..100/1000 unsched=500 …` | a packet from P; see [`packet`] |
//! | `P: raw 00ff…` | bytes from P |
//! | `taking off`, `take 1000` | the application leaves messages; consumes this number of their bytes |
//! | `keep 100` | only the first 100 bytes of messages are retained; `keep all` |
//! | `+5ms`, `+100us` | time passes; timers fire |
//! | `stopped 5ms` | time passes, and the endpoint does not run; then timers fire |
//! | `live` | prints the gauges |
//! | `senders 2` | prints the peers whose messages are arriving, at most this number |
//! | `count GROUP.NAME …` | prints counters |
//!
//! Output lines are `-> P …` for packets, `!! …` for events, `xx …` for drops and `= …` for errors
//! of commands. Lines with `@` were caused by a timer at that time after the `+`.

mod content;
mod packet;
mod transcript;
mod words;

use apus_proto::{
    Call, CommandError, Config, DropReason, Instant, Profile, RpcKey, Transport, Unreachable,
};
use content::content;
use std::collections::BTreeMap;
use std::time::Duration;
use words::{address, key_value, name, nanos, number};

/// Our Homa port.
const OUR_PORT: u16 = 1;
/// Session that every peer serves us in unless the script states another.
const THEIR_SESSION: u64 = 77 << 32 | 77;

/// Runs a script and returns its transcript.
pub(crate) fn run(text: &str) -> String {
    converse(text, 0, |_| unreachable!())
}

/// Runs a script, and then `rounds` more, each of which depends on the output of the previous one.
/// Returns the transcript of all.
pub(crate) fn converse(
    text: &str,
    rounds: usize,
    mut respond: impl FnMut(&str) -> String,
) -> String {
    let mut script = Script::new(text);
    script.lines(text);
    let mut read = 0;
    for _ in 0..rounds {
        let response = respond(&script.out[read..]);
        read = script.out.len();
        script.lines(&response);
    }
    script.out.trim_end().to_owned()
}

struct Script {
    transport: Transport,
    profile: Profile,
    now: Instant,
    out: String,
    /// Our calls: name at our end, id on the wire, server. Ids are per server.
    calls: Vec<(RpcKey, u64, char)>,
    /// Requests that the application has, by the peer's number.
    requests: BTreeMap<u64, RpcKey>,
    /// The sessions offered to each peer, and their claims.
    sessions: BTreeMap<char, Vec<(u64, u32)>>,
    /// The latest claims of our calls to each peer.
    claims: BTreeMap<char, u32>,
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
            claims: BTreeMap::new(),
            drops: vec![0; DropReason::ALL.len()],
            taking: true,
            quiet: false,
        }
    }

    fn lines(&mut self, text: &str) {
        for line in text.lines().map(str::trim) {
            let line = line.split('#').next().unwrap_or("").trim();
            if !line.is_empty() && !line.starts_with("config") {
                self.line(line);
            }
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
                let replied = self.transport.reply(self.now, rpc, payload);
                self.print_error(replied.map_err(|error| error.reason));
            }
            "abandon" => {
                let rpc = self.request(words[0]);
                let done = self.transport.abandon(self.now, rpc);
                self.print_error(done);
            }
            "watch" => {
                let rpc = self.request(words[0]);
                let lives = self.transport.watch_client(self.now, rpc);
                self.print(format_args!("  lives={lives}"));
            }
            "cancel" => {
                let rpc = self.our_call(words[0]).0;
                let done = self.transport.cancel(self.now, rpc);
                self.print_error(done);
            }
            "deadline" => {
                let rpc = self.our_call(words[0]).0;
                let at = self.now + Duration::from_nanos(nanos(words[1]));
                let done = self.transport.set_deadline(rpc, at);
                self.print_error(done);
            }
            "meet" => self.meet(words[0]),
            "limit" => {
                self.transport.set_packet_limit(address(words[0]), number(words[1]) as usize);
            }
            "link" => self.transport.set_link_rate(number(words[0]) as u32),
            "taking" => self.taking = words[0] == "on",
            "take" => self.transport.payload_consumed(number(words[0]) as usize),
            "keep" if words[0] == "all" => self.transport.set_payload_prefix(usize::MAX),
            "keep" => self.transport.set_payload_prefix(number(words[0]) as usize),
            "room" => self.transport.set_request_room(number(words[0]) as usize),
            "serving" => self.transport.set_serving(words[0] == "on"),
            "buffer" => self.transport.set_receive_buffer(number(words[0]) as usize),
            "begin_reading" => self.transport.begin_reading(self.now),
            "finish_reading" => self.transport.finish_reading(self.now),
            "overflow" => self.transport.handle_overflow(self.now),
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
            "senders" => self.print_senders(number(words[0]) as usize),
            "count" => self.print_counters(&words),
            "stopped" => {
                self.now += Duration::from_nanos(nanos(words[0]));
                self.fire("");
            }
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
                ("deadline", time) => {
                    call.deadline = Some(self.now + Duration::from_nanos(nanos(time)));
                }
                ("idempotent", _) => call.idempotent = true,
                (other, _) => panic!("no such option: {other}"),
            }
        }
        let call_to = call.to;
        match self.transport.call(self.now, call) {
            Ok(rpc) => {
                let info = self.transport.info();
                let id = info.iter().find(|info| info.rpc == rpc).unwrap().id;
                self.calls.push((rpc, id, name(call_to)));
            }
            Err(error) => self.print(format_args!("  = {error}")),
        }
    }

    fn print_error(&mut self, done: Result<(), CommandError>) {
        if let Err(error) = done {
            self.print(format_args!("  = {error}"));
        }
    }

    /// Both directions of a first contact, without a word.
    fn meet(&mut self, peer: &str) {
        assert_eq!(self.profile, Profile::Udp, "the kernel profile has no sessions");
        self.quiet = true;
        self.line(&format!("{peer}: DATA s900 0..1/1"));
        self.line(&format!("{peer}: DATA s900 0..1/1"));
        self.line("reply s900 1");
        self.line(&format!("{peer}: ACK s900"));
        self.line(&format!("call {peer} 1"));
        let call = format!("c{}", self.calls.len());
        self.line(&format!("{peer}: NEED_ACK {call} +CONFIRM"));
        self.line(&format!("{peer}: DATA {call} 0..1/1 cutoffs=1"));
        self.line(&format!("{peer}: CUTOFFS {call} 1"));
        // A server that does not have the call takes the pending ack out of the buffer.
        self.line(&format!("{peer}: NEED_ACK {call}"));
        self.calls.clear();
        self.requests.clear();
        self.quiet = false;
    }

    fn advance(&mut self, time: &str) {
        let start = self.now;
        let end = start + Duration::from_nanos(nanos(&time[1..]));
        let mut rounds = 0;
        while let Some((at, _)) = self.transport.next_timeout() {
            if at > end {
                break;
            }
            rounds += 1;
            assert!(rounds < 100_000, "timers do not come to rest");
            self.now = self.now.max(at);
            let since = (self.now - start).as_nanos() as f64 / 1e6;
            self.fire(&format!("@{since:.2}ms "));
        }
        self.now = end;
    }

    fn fire(&mut self, when: &str) {
        self.transport.handle_timeout(self.now);
        self.drain(when);
    }

    /// The application takes a message, if it does that at once.
    fn take(&mut self, bytes: usize) {
        if self.taking {
            self.transport.payload_consumed(bytes);
        }
    }

    fn our_call(&self, name: &str) -> (RpcKey, u64, char) {
        self.calls[name[1..].parse::<usize>().unwrap() - 1]
    }

    fn request(&self, name: &str) -> RpcKey {
        self.requests[&name[1..].parse::<u64>().unwrap()]
    }
}
