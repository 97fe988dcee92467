//! Log of a capture: builds IP packets and writes them to the file.

use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use etherparse::{IpFragOffset, IpHeaders, IpNumber, Ipv4Header, Ipv6Header, PacketBuilder};
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, PcapError};

/// Time to live, or hop limit, of every written packet: Linux's default.
const HOPS: u8 = 64;

/// A handle to a capture. Clones refer to the same capture.
#[derive(Clone)]
pub struct CaptureLog {
    state: Arc<Mutex<LogState>>,
}

struct LogState {
    records: PcapWriter<File>,
    /// The file that `records` writes to, which `records` does not let its owner flush.
    file: File,
    written: u64,
    missing: u64,
    /// The first error of the file. No packet is written after it, because the last record may be
    /// incomplete.
    broken: Option<io::ErrorKind>,
    /// The packet under construction, kept for its allocation.
    frame: Vec<u8>,
}

impl CaptureLog {
    /// Returns the number of packets in the capture.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.lock().written
    }

    /// Returns the number of packets missing in the capture: the file could not store them, or they
    /// do not fit into an IP packet.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.lock().missing
    }

    /// Writes buffered packets to the file.
    ///
    /// # Errors
    ///
    /// An error of the file, now or earlier.
    pub fn flush(&self) -> io::Result<()> {
        let mut state = self.lock();
        match state.broken {
            Some(kind) => Err(kind.into()),
            None => state.file.flush(),
        }
    }

    pub(super) fn start(writer: Box<dyn Write + Send>) -> io::Result<Self> {
        let header = PcapHeader { datalink: DataLink::RAW, ..PcapHeader::default() };
        let file = File(Arc::new(Mutex::new(writer)));
        let records = PcapWriter::with_header(file.clone(), header).map_err(to_io)?;
        let state =
            LogState { records, file, written: 0, missing: 0, broken: None, frame: Vec::new() };
        Ok(Self { state: Arc::new(Mutex::new(state)) })
    }

    /// Appends a packet.
    pub(super) fn write(&self, from: SocketAddr, to: SocketAddr, traffic_class: u8, packet: &[u8]) {
        let mut state = self.lock();
        let built = build(from, to, traffic_class, packet, &mut state.frame);
        if built && state.broken.is_none() {
            match state.append() {
                Ok(()) => return state.written += 1,
                Err(error) => state.broken = Some(error.kind()),
            }
        }
        state.missing += 1;
    }

    fn lock(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogState {
    fn append(&mut self) -> io::Result<()> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let len = u32::try_from(self.frame.len()).expect("an IP packet is shorter than 64 KiB");
        self.records.write_packet(&PcapPacket::new(now, len, &self.frame)).map_err(to_io)?;
        Ok(())
    }
}

impl fmt::Debug for CaptureLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("CaptureLog")
            .field("written", &state.written)
            .field("missing", &state.missing)
            .finish_non_exhaustive()
    }
}

/// The file, shared by the pcap writer and the log.
#[derive(Clone)]
struct File(Arc<Mutex<Box<dyn Write + Send>>>);

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}

/// Builds the IP packet in `frame`; returns whether there can be such a packet.
fn build(
    from: SocketAddr,
    to: SocketAddr,
    traffic_class: u8,
    packet: &[u8],
    frame: &mut Vec<u8>,
) -> bool {
    let ip = match (from, to) {
        (SocketAddr::V4(from), SocketAddr::V4(to)) => {
            let mut header = Ipv4Header {
                dscp: (traffic_class >> 2).try_into().expect("six bits are left"),
                ecn: (traffic_class & 0b11).try_into().expect("two bits are left"),
                dont_fragment: true,
                fragment_offset: IpFragOffset::ZERO,
                time_to_live: HOPS,
                protocol: IpNumber::UDP,
                ..Ipv4Header::default()
            };
            header.source = from.ip().octets();
            header.destination = to.ip().octets();
            IpHeaders::Ipv4(header, etherparse::Ipv4Extensions::default())
        }
        (SocketAddr::V6(from), SocketAddr::V6(to)) => {
            let header = Ipv6Header {
                traffic_class,
                next_header: IpNumber::UDP,
                hop_limit: HOPS,
                source: from.ip().octets(),
                destination: to.ip().octets(),
                ..Ipv6Header::default()
            };
            IpHeaders::Ipv6(header, etherparse::Ipv6Extensions::default())
        }
        _ => return false,
    };
    frame.clear();
    PacketBuilder::ip(ip).udp(from.port(), to.port()).write(frame, packet).is_ok()
        && frame.len() <= usize::from(u16::MAX)
}

fn to_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}
