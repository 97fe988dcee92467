//! Recorded conversations: their packets and messages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use apus_wire::{Body, Data, EVERYTHING, Kind, Packet, Profile, Resend};
use etherparse::{NetSlice, SlicedPacket};
use pcap_file::pcap::PcapReader;

/// The recorded hosts.
pub(crate) const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2));
pub(crate) const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 3));
/// IP protocols.
const HOMA: u8 = 146;
const ICMP: u8 = 1;

/// A packet without Ethernet and IP headers.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    /// Nanoseconds since the start of the recording.
    pub(crate) at: u64,
    pub(crate) from_client: bool,
    /// The Homa packet; empty for ICMP "port unreachable".
    pub(crate) bytes: Option<Vec<u8>>,
}

/// A conversation.
pub(crate) struct Recording {
    pub(crate) name: String,
    pub(crate) packets: Vec<Recorded>,
}

/// A packet of a message: RPC, offset, bytes.
pub(crate) type Piece = (u64, u32, usize);

impl Recorded {
    pub(crate) fn packet(&self) -> Option<Packet<'_>> {
        self.bytes.as_ref().map(|bytes| Packet::parse(Profile::Kernel, bytes).unwrap())
    }

    /// Returns the even id of its RPC.
    pub(crate) fn id(&self) -> Option<u64> {
        self.packet().map(|packet| packet.header.sender_id.client_id())
    }

    pub(crate) fn kind(&self) -> Option<Kind> {
        self.packet().map(|packet| packet.body.kind())
    }

    pub(crate) fn data(&self) -> Option<(Data, &[u8])> {
        match self.packet()?.body {
            Body::Data(data, payload) => Some((data, payload)),
            _ => None,
        }
    }

    /// Returns the piece of a message that a DATA packet carries, unless it is a retransmission.
    pub(crate) fn first_time(&self) -> Option<(Data, Piece)> {
        let (data, payload) = self.data().filter(|(data, _)| !data.retransmit)?;
        Some((data, (self.id()?, data.offset, payload.len())))
    }

    pub(crate) fn resend(&self) -> Option<Resend> {
        match self.packet()?.body {
            Body::Resend(resend) => Some(resend),
            _ => None,
        }
    }
}

/// Returns all available recordings.
pub(crate) fn recordings() -> Vec<Recording> {
    let dir = std::env::var_os("APUS_CAPTURES").map_or_else(
        || {
            PathBuf::from(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../../shared/reference/captures"
            ))
        },
        PathBuf::from,
    );
    let Ok(entries) = std::fs::read_dir(&dir) else {
        eprintln!("SKIPPED: no recordings of the kernel module in {}", dir.display());
        return Vec::new();
    };
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "pcap"));
    files.sort();
    files.iter().map(read).collect()
}

fn read(path: &PathBuf) -> Recording {
    let mut reader = PcapReader::new(File::open(path).unwrap()).unwrap();
    let (mut packets, mut begin) = (Vec::new(), None);
    while let Some(record) = reader.next_packet() {
        let record = record.unwrap();
        let begin = *begin.get_or_insert(record.timestamp);
        let sliced = SlicedPacket::from_ethernet(&record.data).unwrap();
        let Some(NetSlice::Ipv4(ip)) = sliced.net else { continue };
        let bytes = match ip.header().protocol().0 {
            HOMA => Some(ip.payload().payload.to_vec()),
            ICMP => None,
            _ => continue,
        };
        let at = (record.timestamp - begin).as_nanos() as u64;
        let from_client = IpAddr::V4(ip.header().source_addr()) == CLIENT;
        packets.push(Recorded { at, from_client, bytes });
    }
    let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
    Recording { name, packets }
}

impl Recording {
    /// Returns the messages of one side by RPC, and whether each was recorded completely.
    pub(crate) fn messages(&self, from_client: bool) -> BTreeMap<u64, (Vec<u8>, bool)> {
        let mut messages: BTreeMap<u64, (Vec<u8>, BTreeSet<usize>)> = BTreeMap::new();
        for recorded in self.packets.iter().filter(|packet| packet.from_client == from_client) {
            let Some((data, payload)) = recorded.data() else { continue };
            let (content, here) = messages.entry(recorded.id().unwrap()).or_default();
            content.resize(data.message_length as usize, 0);
            let range = data.offset as usize..data.offset as usize + payload.len();
            content[range.clone()].copy_from_slice(payload);
            here.extend(range);
        }
        let whole = |(content, here): (Vec<u8>, BTreeSet<usize>)| {
            let whole = here.len() == content.len();
            (content, whole)
        };
        messages.into_iter().map(|(id, message)| (id, whole(message))).collect()
    }

    /// Returns whether one side had received the other's cutoffs before the recording.
    pub(crate) fn knows_cutoffs(&self, from_client: bool) -> bool {
        let mut data = self.packets.iter().filter(|packet| packet.from_client == from_client);
        data.find_map(Recorded::data).is_some_and(|(data, _)| data.cutoff_version > 0)
    }

    /// Returns the packets of the client that never reached the server: they were dropped behind
    /// the recording point, as the server's RESENDs show.
    pub(crate) fn lost(&self) -> BTreeSet<usize> {
        let mut lost = BTreeSet::new();
        for (index, recorded) in self.packets.iter().enumerate().filter(|(_, p)| !p.from_client) {
            let missing = match (recorded.kind(), recorded.resend()) {
                (Some(Kind::RpcUnknown), _) => 0..u32::MAX,
                (_, Some(resend)) if resend.length == EVERYTHING => 0..u32::MAX,
                (_, Some(resend)) => resend.offset..resend.end(),
                _ => continue,
            };
            let before = self.packets[..index].iter().enumerate();
            lost.extend(before.filter_map(|(earlier, packet)| {
                let (data, _) = packet.data().filter(|_| packet.from_client)?;
                let hit = packet.id() == recorded.id() && missing.contains(&data.offset);
                hit.then_some(earlier)
            }));
        }
        lost
    }

    /// Returns whether the next packet is another RESEND about the same RPC.
    pub(crate) fn is_asked_more(&self, index: usize) -> bool {
        let is_resend = |packet: &Recorded| packet.kind() == Some(Kind::Resend);
        let (asked, next) = (&self.packets[index], self.packets.get(index + 1));
        let same =
            |next: &Recorded| next.id() == asked.id() && next.from_client == asked.from_client;
        is_resend(asked) && next.is_some_and(|next| same(next) && is_resend(next))
    }

    /// Returns the packets that the other side sent about the same RPC in response to packet
    /// `index`: everything until the first side sends about it again.
    pub(crate) fn answer_to(&self, index: usize) -> Vec<&Recorded> {
        let asked = &self.packets[index];
        let rest = self.packets[index + 1..].iter().filter(|packet| packet.id() == asked.id());
        rest.take_while(|packet| packet.from_client != asked.from_client).collect()
    }
}
