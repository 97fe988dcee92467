//! Capture decoder: an iterator over the Homa packets of a capture.
//!
//! Calls every other module of this crate: capture record, link-layer frame, IP datagram, Homa
//! packet, RPC.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::io::Read;
use std::net::SocketAddr;

use apus_wire::{Header, Profile, SealedHeader};

use crate::capture_file::{CaptureReader, CapturedRecord};
use crate::datagram::{Datagram, Encapsulation, IpContent, ip_content};
use crate::error::Error;
use crate::frame::{UnknownLink, slice};
use crate::offload::{looks_like_header, packet_ends};
use crate::packet::{CapturedPacket, Content, QuotedPacket, raw_header, raw_ports};
use crate::rpc::{CapturedRpc, RpcTable};
use crate::unseal::{KeyLog, Unsealer};

/// Reads a capture and yields its packets.
///
/// Packets of the kernel profile are recognized by their IP protocol number. A UDP datagram is
/// recognized as udp profile if it starts with a header whose ports equal the datagram's ports, and
/// whose type, header length, version and unused features are valid. From then on, every datagram
/// between these two addresses is decoded, so malformed packets are reported rather than skipped.
/// Datagrams on the ports passed to [`Decoder::open`] are always decoded.
///
/// The iteration ends after an error.
pub struct Decoder {
    capture_file: CaptureReader,
    detector: UdpDetector,
    unsealer: Unsealer,
    rpcs: RpcTable,
    /// Packets of the last record not yet returned by the iterator.
    ready: VecDeque<CapturedPacket>,
    /// Time of the first record, in nanoseconds since 1970.
    start: Option<i64>,
    skipped: SkippedRecords,
    done: bool,
}

/// Numbers of records that were not decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkippedRecords {
    /// Records that contain no Homa packet.
    pub others: u64,
    /// Records of unknown link types, by the number of the type (`LINKTYPE_…`).
    pub unknown_links: BTreeMap<i32, u64>,
}

/// Recognizes the datagrams of the udp profile.
#[derive(Debug)]
struct UdpDetector {
    ports: Vec<u16>,
    /// Pairs of addresses, lower first, with a valid header captured between them.
    flows: HashSet<(SocketAddr, SocketAddr)>,
}

impl Decoder {
    /// Opens a capture and reads its file header. Datagrams from and to `ports` are decoded even if
    /// they do not start with a valid header.
    ///
    /// # Errors
    ///
    /// The file is not a capture, or it cannot be read.
    pub fn open(reader: impl Read + Send + 'static, ports: &[u16]) -> Result<Self, Error> {
        Ok(Self {
            capture_file: CaptureReader::open(reader)?,
            detector: UdpDetector { ports: ports.to_vec(), flows: HashSet::new() },
            unsealer: Unsealer::default(),
            rpcs: RpcTable::default(),
            ready: VecDeque::new(),
            start: None,
            skipped: SkippedRecords::default(),
            done: false,
        })
    }

    /// Opens sealed packets with the secrets of a key log, if the capture contains their
    /// handshakes.
    #[must_use]
    pub fn with_keys(mut self, keys: KeyLog) -> Self {
        self.unsealer = Unsealer::new(keys);
        self
    }

    /// Returns the RPCs decoded so far; [`crate::RpcIndex`] is the position in this slice.
    #[must_use]
    pub fn rpcs(&self) -> &[CapturedRpc] {
        self.rpcs.all()
    }

    /// Decodes the rest of the capture, up to its end or the first error, and returns all RPCs.
    #[must_use]
    pub fn into_rpcs(mut self) -> Vec<CapturedRpc> {
        self.by_ref().for_each(drop);
        self.rpcs.into_all()
    }

    /// Returns the number of records skipped so far.
    #[must_use]
    pub fn skipped(&self) -> &SkippedRecords {
        &self.skipped
    }

    fn read(&mut self) -> Result<bool, Error> {
        let Some(record) = self.capture_file.next()? else { return Ok(false) };
        let start = *self.start.get_or_insert(record.time);
        let found = match slice(record.link, record.data) {
            Ok(sliced) => sliced.as_ref().and_then(ip_content),
            Err(UnknownLink(link)) => {
                *self.skipped.unknown_links.entry(link).or_default() += 1;
                return Ok(true);
            }
        };
        let packets = found
            .map_or_else(Vec::new, |found| packets(&mut self.detector, &mut self.unsealer, &found));
        self.skipped.others += u64::from(packets.is_empty());
        let CapturedRecord { number, time, .. } = record;
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
    type Item = Result<CapturedPacket, Error>;

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

impl UdpDetector {
    /// Returns whether a datagram belongs to the udp profile. A valid header marks its two
    /// addresses, so that later datagrams between them are decoded too.
    fn observe(&mut self, datagram: &Datagram<'_>) -> bool {
        let Datagram { from, to, bytes, .. } = *datagram;
        if looks_like_header(bytes, from.port(), to.port()) {
            self.flows.insert((from.min(to), from.max(to)));
        }
        self.is_homa(datagram)
    }

    fn is_homa(&self, datagram: &Datagram<'_>) -> bool {
        let Datagram { from, to, bytes, .. } = *datagram;
        if looks_like_header(bytes, from.port(), to.port()) {
            return true;
        }
        let ends = (from.min(to), from.max(to));
        let listed = self.ports.contains(&from.port()) || self.ports.contains(&to.port());
        !bytes.is_empty() && (listed || self.flows.contains(&ends))
    }
}

/// Returns the packets of an IP packet, without number, times and notes.
fn packets(
    detector: &mut UdpDetector,
    unsealer: &mut Unsealer,
    ip_content: &IpContent<'_>,
) -> Vec<CapturedPacket> {
    match ip_content {
        IpContent::Datagram(datagram) => match datagram.carrier {
            Encapsulation::Udp => {
                let datagram = &from_own_port(datagram);
                if detector.observe(datagram) {
                    udp_packets(unsealer, datagram)
                } else {
                    Vec::new()
                }
            }
            Encapsulation::Homa if datagram.bytes.is_empty() => Vec::new(),
            Encapsulation::Homa => vec![kernel_packet(datagram)],
        },
        IpContent::Unreachable { from, to, class, what, about } => {
            let about = &from_own_port(about);
            let profile = match about.carrier {
                Encapsulation::Homa => Profile::Kernel,
                Encapsulation::Udp if detector.is_homa(about) => Profile::Udp,
                Encapsulation::Udp => return Vec::new(),
            };
            let (mut quoted_from, mut quoted_to) = (about.from, about.to);
            if let (Encapsulation::Homa, Some((sport, dport))) =
                (about.carrier, raw_ports(about.bytes))
            {
                quoted_from.set_port(sport);
                quoted_to.set_port(dport);
            }
            let header = raw_header(about.bytes);
            let about = QuotedPacket { from: quoted_from, to: quoted_to, header };
            let content = Content::Unreachable { what, about };
            vec![CapturedPacket {
                from: *from,
                to: *to,
                class: *class,
                ..empty_packet(profile, 0, content)
            }]
        }
    }
}

/// Rewrites the source port of a datagram of sprayed packets (`WIRE-36`) to its sender's own port;
/// returns any other datagram unchanged.
fn from_own_port<'a>(datagram: &Datagram<'a>) -> Datagram<'a> {
    let mut datagram = *datagram;
    if datagram.carrier == Encapsulation::Udp
        && let Some(port) = Header::peek_sprayed(datagram.bytes)
        && looks_like_header(datagram.bytes, port, datagram.to.port())
    {
        datagram.from.set_port(port);
    }
    datagram
}

fn kernel_packet(datagram: &Datagram<'_>) -> CapturedPacket {
    let Datagram { mut from, mut to, class, bytes, len, .. } = *datagram;
    if let Some((sport, dport)) = raw_ports(bytes) {
        from.set_port(sport);
        to.set_port(dport);
    }
    let content = Content::parse(Profile::Kernel, bytes, len);
    CapturedPacket { from, to, class, ..empty_packet(Profile::Kernel, len, content) }
}

fn udp_packets(unsealer: &mut Unsealer, datagram: &Datagram<'_>) -> Vec<CapturedPacket> {
    let Datagram { from, to, class, bytes, len, .. } = *datagram;
    let mut packets = Vec::new();
    for (captured, len) in split(bytes, len, (from.port(), to.port())) {
        let opened = if captured.len() == len { unsealer.open(from, to, captured) } else { None };
        let number = SealedHeader::parse(captured).map(|header| header.number);
        let Some(opened) = opened else {
            packets.push(empty_packet(
                Profile::Udp,
                len,
                Content::parse(Profile::Udp, captured, len),
            ));
            continue;
        };
        for (packet, len) in split(&opened, opened.len(), (from.port(), to.port())) {
            let content = Content::parse(Profile::Udp, packet, len);
            let opened = empty_packet(Profile::Udp, len, content);
            packets.push(CapturedPacket { sealed_as: number, ..opened });
        }
    }
    let parts = packets.len();
    for (index, packet) in packets.iter_mut().enumerate() {
        (packet.from, packet.to, packet.class) = (from, to, class);
        packet.part = (index + 1, parts);
    }
    packets
}

/// Splits a datagram of `len` bytes into its packets and their lengths; `bytes` are the captured
/// part.
fn split(bytes: &[u8], len: usize, (from_port, to_port): (u16, u16)) -> Vec<(&[u8], usize)> {
    let ends = if looks_like_header(bytes, from_port, to_port) {
        packet_ends(bytes, len, from_port, to_port)
    } else {
        vec![len]
    };
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let packet =
        |(start, &end): (usize, &usize)| (&bytes[start..bytes.len().min(end)], end - start);
    starts.zip(&ends).map(packet).collect()
}

/// Returns a packet whose remaining fields have neutral values.
fn empty_packet(profile: Profile, len: usize, content: Content) -> CapturedPacket {
    let nowhere = SocketAddr::from(([0; 4], 0));
    CapturedPacket {
        number: 0,
        part: (1, 1),
        time: 0,
        since_start: 0,
        from: nowhere,
        to: nowhere,
        class: 0,
        profile,
        len,
        sealed_as: None,
        content,
        note: None,
    }
}
