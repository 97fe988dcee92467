//! The filter: a process that decides which packets may pass.
//!
//! Like `screend`, the filter receives the headers of every packet, applies its rules, and answers
//! with a byte. It is an application and has no priority over others.

use std::io::{ErrorKind, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::frame;
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::{Control, NO_ADDRESS};

/// Length of the queue of packets for the filter. Source: Mogul & Ramakrishnan.
pub(super) const QUEUE: usize = 32;

/// Bytes of each packet that the filter receives: Ethernet, IPv4 without options, and the ports.
pub(super) const RECORD: usize = frame::ETHERNET + 24;

/// The verdict that a packet may pass.
pub(super) const PASS: u8 = 1;
const REFUSE: u8 = 0;

/// The socket that the router accepts its filter on. Its name is abstract: there is no file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Door(String);

impl Door {
    /// Returns a name that no other filter has.
    pub(super) fn new(number: u64) -> Self {
        Self(format!("apus-livelock-{}-{number}", std::process::id()))
    }

    fn address(&self) -> Result<SocketAddr, Error> {
        SocketAddr::from_abstract_name(&self.0).doing(|| format!("name a socket {}", self.0))
    }

    /// Listens on the socket, in the router.
    pub(super) fn open(&self) -> Result<UnixListener, Error> {
        UnixListener::bind_addr(&self.address()?).doing(|| format!("listen at {}", self.0))
    }

    /// Connects to the socket as soon as the router listens, in the filter.
    fn enter(&self) -> Result<UnixStream, Error> {
        /// Chosen by us: a hundred times the start time of a router.
        const TIMEOUT: Duration = Duration::from_secs(10);
        let (address, began) = (self.address()?, Instant::now());
        loop {
            match UnixStream::connect_addr(&address) {
                Err(error)
                    if error.kind() == ErrorKind::ConnectionRefused
                        && began.elapsed() < TIMEOUT =>
                {
                    thread::sleep(Duration::from_millis(1));
                }
                result => return result.doing(|| format!("connect to {}", self.0)),
            }
        }
    }
}

/// A rule: its condition and its verdict.
#[derive(Clone, Copy, Debug)]
struct Rule {
    /// The networks of source and destination: address and length of the prefix.
    from: ([u8; 4], u32),
    to: ([u8; 4], u32),
    /// The protocol; 0 for any.
    protocol: u8,
    /// The range of destination ports, if the protocol has ports.
    ports: (u16, u16),
    verdict: u8,
}

/// The rules of the experiment; the first that fits decides. The last rule accepts the experiment's
/// packets, so each of them is compared with all rules.
const RULES: [Rule; 8] = [
    refuse(([192, 168, 0, 0], 16), 0, (0, u16::MAX)),
    refuse(([172, 16, 0, 0], 12), 0, (0, u16::MAX)),
    refuse(([10, 1, 0, 0], 16), 6, (23, 23)),
    refuse(([10, 1, 0, 0], 16), 6, (512, 514)),
    refuse(([10, 1, 0, 0], 16), 17, (69, 69)),
    refuse(([10, 1, 0, 0], 16), 17, (111, 111)),
    refuse(([10, 1, 0, 0], 16), 17, (2049, 2049)),
    Rule {
        from: ([10, 1, 0, 0], 16),
        to: ([10, 2, 0, 0], 16),
        protocol: 17,
        ports: (0, u16::MAX),
        verdict: PASS,
    },
];

const fn refuse(from: ([u8; 4], u32), protocol: u8, ports: (u16, u16)) -> Rule {
    Rule { from, to: ([0; 4], 0), protocol, ports, verdict: REFUSE }
}

impl Rule {
    fn fits(&self, from: [u8; 4], to: [u8; 4], protocol: u8, port: u16) -> bool {
        within(from, self.from)
            && within(to, self.to)
            && (self.protocol == 0 || self.protocol == protocol)
            && (self.ports.0..=self.ports.1).contains(&port)
    }
}

fn within(address: [u8; 4], (network, len): ([u8; 4], u32)) -> bool {
    let differ = u32::from_be_bytes(address) ^ u32::from_be_bytes(network);
    // A prefix of length 0 shifts all 32 bits out.
    differ.checked_shr(32 - len).unwrap_or(0) == 0
}

/// Returns the verdict on a packet with these headers.
fn verdict(record: &[u8; RECORD]) -> u8 {
    let ip = &record[frame::ETHERNET..];
    let address = |at: usize| [ip[at], ip[at + 1], ip[at + 2], ip[at + 3]];
    // IP options would move the ports; the generator sends none.
    if ip[0] != 0x45 {
        return REFUSE;
    }
    let port = u16::from_be_bytes([ip[22], ip[23]]);
    let fits = |rule: &&Rule| rule.fits(address(12), address(16), ip[9], port);
    RULES.iter().find(fits).map_or(REFUSE, |rule| rule.verdict)
}

/// Runs the filter until the router has ended; reports the number of packets that it saw.
pub(super) fn agent(door: &Door, control: &mut Control) -> Result<Value, Error> {
    let mut router = door.enter()?;
    control.ready(NO_ADDRESS)?;
    let mut record = [0; RECORD];
    let mut seen = 0_u64;
    loop {
        match router.read_exact(&mut record) {
            Ok(()) => {}
            Err(error) if is_end(error.kind()) => return Ok(seen.into()),
            Err(error) => return Err(error).doing(|| "read a record".to_owned()),
        }
        seen += 1;
        match router.write_all(&[verdict(&record)]) {
            Ok(()) => {}
            Err(error) if is_end(error.kind()) => return Ok(seen.into()),
            Err(error) => return Err(error).doing(|| "answer the router".to_owned()),
        }
    }
}

const fn is_end(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(from: [u8; 4], to: [u8; 4], change: impl FnOnce(&mut [u8])) -> [u8; RECORD] {
        let mut packet = frame::shortest([2; 6], from, to);
        change(&mut packet);
        *packet.first_chunk().unwrap()
    }

    #[test]
    fn packets_of_the_experiment_pass() {
        assert_eq!(verdict(&record([10, 1, 0, 1], [10, 2, 9, 9], |_| ())), PASS);
    }

    #[test]
    fn packets_that_a_rule_refuses_or_no_rule_matches_do_not_pass() {
        let port = |port: u16| {
            move |packet: &mut [u8]| packet[36..38].copy_from_slice(&port.to_be_bytes())
        };
        let (from, to) = ([10, 1, 0, 1], [10, 2, 9, 9]);
        assert_eq!(verdict(&record(from, to, port(111))), REFUSE);
        assert_eq!(verdict(&record(from, to, port(112))), PASS);
        assert_eq!(verdict(&record([172, 31, 0, 1], to, |_| ())), REFUSE);
        assert_eq!(verdict(&record([172, 32, 0, 1], to, |_| ())), REFUSE, "unknown");
        assert_eq!(verdict(&record(from, [10, 3, 0, 1], |_| ())), REFUSE, "to elsewhere");
        assert_eq!(verdict(&record(from, to, |packet| packet[23] = 6)), REFUSE, "TCP");
        assert_eq!(verdict(&record(from, to, |packet| packet[14] = 0x46)), REFUSE, "options");
    }
}
