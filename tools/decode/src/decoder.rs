//! Which packets are in a capture, one after the other?

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::io::Read;
use std::net::SocketAddr;

use apus_wire::Profile;

use crate::datagram::{Carried, Carrier, Datagram, carried};
use crate::error::Error;
use crate::frame::{UnknownLink, slice};
use crate::merged::{looks_like_header, packet_size};
use crate::packet::{Content, Packet, Quoted, raw_header, raw_ports};
use crate::recording::{Record, Recording};
use crate::rpc::{Rpc, Rpcs};

/// Reads a capture and yields its packets.
///
/// Packets of the kernel profile have a protocol number of their own. A datagram is taken for the udp profile if it
/// begins with a header whose ports are those of the datagram and whose type, length, version and reserved bytes fit;
/// from then on everything between these two is, so that a malformed packet is seen as one. Datagrams of the ports given
/// to [`Decoder::open`] are, whatever they look like.
///
/// An error ends the iteration.
pub struct Decoder {
    recording: Recording,
    dialects: Dialects,
    rpcs: Rpcs,
    /// Packets of the last record that have not been asked for.
    ready: VecDeque<Packet>,
    /// Time of the first record.
    start: Option<i64>,
    skipped: Skipped,
    done: bool,
}

/// What in a capture was not decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Records of something else.
    pub others: u64,
    /// Records of link types that are not understood, by the number of the type (`LINKTYPE_…`).
    pub unknown_links: BTreeMap<i32, u64>,
}

/// Which datagrams are ours.
#[derive(Debug)]
struct Dialects {
    ports: Vec<u16>,
    /// Ends, the lower one first, between which there has been a packet.
    known: HashSet<(SocketAddr, SocketAddr)>,
}

impl Decoder {
    /// Looks at the beginning of a capture. Datagrams from and to these UDP ports are decoded whatever they look
    /// like.
    ///
    /// # Errors
    ///
    /// It is no capture, or cannot be read.
    pub fn open(reader: impl Read + Send + 'static, ports: &[u16]) -> Result<Self, Error> {
        Ok(Self {
            recording: Recording::open(reader)?,
            dialects: Dialects { ports: ports.to_vec(), known: HashSet::new() },
            rpcs: Rpcs::default(),
            ready: VecDeque::new(),
            start: None,
            skipped: Skipped::default(),
            done: false,
        })
    }

    /// The RPCs that have been seen so far, by [`crate::RpcIndex`].
    #[must_use]
    pub fn rpcs(&self) -> &[Rpc] {
        self.rpcs.all()
    }

    /// All RPCs of the capture, those of packets included that nobody has asked for yet, as far as it can be read.
    #[must_use]
    pub fn into_rpcs(mut self) -> Vec<Rpc> {
        self.by_ref().for_each(drop);
        self.rpcs.into_all()
    }

    /// What was not decoded so far.
    #[must_use]
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    fn read(&mut self) -> Result<bool, Error> {
        let Some(record) = self.recording.next()? else { return Ok(false) };
        let start = *self.start.get_or_insert(record.time);
        let found = match slice(record.link, record.data) {
            Ok(sliced) => sliced.as_ref().and_then(carried),
            Err(UnknownLink(link)) => {
                *self.skipped.unknown_links.entry(link).or_default() += 1;
                return Ok(true);
            }
        };
        let packets = found.map_or_else(Vec::new, |found| packets(&mut self.dialects, &found));
        self.skipped.others += u64::from(packets.is_empty());
        let Record { number, time, .. } = record;
        for mut packet in packets {
            (packet.number, packet.time) = (number, time);
            packet.since_start = time.saturating_sub(start);
            packet.note = self.rpcs.observe(&packet);
            self.ready.push_back(packet);
        }
        Ok(true)
    }
}

impl Iterator for Decoder {
    type Item = Result<Packet, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(packet) = self.ready.pop_front() {
                return Some(Ok(packet));
            }
            if self.done {
                return None;
            }
            match self.read() {
                Ok(true) => {}
                Ok(false) => self.done = true,
                Err(error) => {
                    self.done = true;
                    return Some(Err(error));
                }
            }
        }
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { rpcs, skipped, .. } = self;
        f.debug_struct("Decoder")
            .field("rpcs", &rpcs.all().len())
            .field("skipped", skipped)
            .finish_non_exhaustive()
    }
}

impl Dialects {
    /// Whether a datagram is of the udp profile. What is between its ends is from then on.
    fn learn(&mut self, datagram: &Datagram<'_>) -> bool {
        let Datagram { from, to, bytes, .. } = *datagram;
        if looks_like_header(bytes, from.port(), to.port()) {
            self.known.insert((from.min(to), from.max(to)));
        }
        self.is_ours(datagram)
    }

    fn is_ours(&self, datagram: &Datagram<'_>) -> bool {
        let Datagram { from, to, bytes, .. } = *datagram;
        if looks_like_header(bytes, from.port(), to.port()) {
            return true;
        }
        let ends = (from.min(to), from.max(to));
        let named = self.ports.contains(&from.port()) || self.ports.contains(&to.port());
        !bytes.is_empty() && (named || self.known.contains(&ends))
    }
}

/// The packets in what an IP packet carries, without number, times and notes.
fn packets(dialects: &mut Dialects, carried: &Carried<'_>) -> Vec<Packet> {
    match carried {
        Carried::Datagram(datagram) => match datagram.carrier {
            Carrier::Homa if datagram.bytes.is_empty() => Vec::new(),
            Carrier::Homa => vec![kernel_packet(datagram)],
            Carrier::Udp if dialects.learn(datagram) => udp_packets(datagram),
            Carrier::Udp => Vec::new(),
        },
        Carried::Unreachable { from, to, class, what, about } => {
            let profile = match about.carrier {
                Carrier::Homa => Profile::Kernel,
                Carrier::Udp if dialects.is_ours(about) => Profile::Udp,
                Carrier::Udp => return Vec::new(),
            };
            let (mut quoted_from, mut quoted_to) = (about.from, about.to);
            if let (Carrier::Homa, Some((sport, dport))) = (about.carrier, raw_ports(about.bytes)) {
                quoted_from.set_port(sport);
                quoted_to.set_port(dport);
            }
            let header = raw_header(about.bytes);
            let about = Quoted { from: quoted_from, to: quoted_to, header };
            let content = Content::Unreachable { what, about };
            vec![Packet { from: *from, to: *to, class: *class, ..bare(profile, 0, content) }]
        }
    }
}

fn kernel_packet(datagram: &Datagram<'_>) -> Packet {
    let Datagram { mut from, mut to, class, bytes, len, .. } = *datagram;
    if let Some((sport, dport)) = raw_ports(bytes) {
        from.set_port(sport);
        to.set_port(dport);
    }
    let content = Content::parse(Profile::Kernel, bytes, len);
    Packet { from, to, class, ..bare(Profile::Kernel, len, content) }
}

fn udp_packets(datagram: &Datagram<'_>) -> Vec<Packet> {
    let Datagram { from, to, class, bytes, len, .. } = *datagram;
    let size = if looks_like_header(bytes, from.port(), to.port()) {
        packet_size(bytes, len, from.port(), to.port())
    } else {
        len
    };
    let starts: Vec<usize> = (0..bytes.len()).step_by(size).collect();
    let packet = |(index, start): (usize, &usize)| {
        let len = size.min(len - start);
        let there = &bytes[*start..bytes.len().min(start + len)];
        let content = Content::parse(Profile::Udp, there, len);
        let part = (index + 1, starts.len());
        Packet { from, to, class, part, ..bare(Profile::Udp, len, content) }
    };
    starts.iter().enumerate().map(packet).collect()
}

/// A packet of which nothing else is known.
fn bare(profile: Profile, len: usize, content: Content) -> Packet {
    let nowhere = SocketAddr::from(([0; 4], 0));
    Packet {
        number: 0,
        part: (1, 1),
        time: 0,
        since_start: 0,
        from: nowhere,
        to: nowhere,
        class: 0,
        profile,
        len,
        content,
        note: None,
    }
}
