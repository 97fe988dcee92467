//! Capture files: reads the records of pcap and pcapng files.
//!
//! Reads pcap, with micro- or nanoseconds, and pcapng, with any clock and several interfaces and
//! sections, in either byte order. The file is read as a stream, so it may be a pipe and larger
//! than memory. [`crate::Decoder`] calls this module.

mod clock;
mod reader;

use std::io::Read;

use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Block, PcapBlockOwned, PcapError};

use self::clock::Clock;
use self::reader::LastError;
use crate::error::Error;

/// Initial size of the read buffer in bytes.
const BUFFER_SIZE: usize = 1 << 16;
/// Upper bound for the length of a record or block in bytes. Rationale: 64 times the limit of
/// libpcap (256 KiB), since pcapng blocks may contain lists of names. A file with a larger value is
/// damaged, or crafted to exhaust memory.
const MAX_BLOCK: usize = 1 << 24;

/// A captured frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CapturedRecord<'a> {
    /// Number of the record, starting at 1, as Wireshark counts.
    pub number: u64,
    /// Capture time in nanoseconds since 1970.
    pub time: i64,
    /// Link type: one of the `LINKTYPE_` numbers.
    pub link: i32,
    /// Captured bytes, possibly fewer than were on the network.
    pub data: &'a [u8],
}

/// A capture that is being read.
pub(crate) struct CaptureReader {
    blocks: Box<dyn PcapReaderIterator + Send>,
    last_error: LastError,
    /// Interfaces of the current section; a pcap file has one.
    interfaces: Vec<Interface>,
    records: u64,
    /// Bytes and time of the current record.
    data: Vec<u8>,
    time: i64,
}

/// A captured interface.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: i32,
    clock: Clock,
}

/// Kind of a block.
enum BlockKind {
    /// A record, of this link type.
    Record(i32),
    /// Any other block.
    Other,
}

impl CaptureReader {
    /// Opens a capture and reads its file header.
    ///
    /// # Errors
    ///
    /// The file is not a capture, or it cannot be read.
    pub(crate) fn open(reader: impl Read + Send + 'static) -> Result<Self, Error> {
        let (last_error, reader) = reader::open(reader)?;
        let blocks =
            pcap_parser::create_reader(BUFFER_SIZE, reader).map_err(|error| match error {
                PcapError::Incomplete(_) | PcapError::UnexpectedEof => {
                    Error::CutOff { at: 0, records: 0 }
                }
                PcapError::ReadError => last_error.error(0),
                PcapError::Eof => Error::Empty,
                _ => Error::NotACapture,
            })?;
        let (data, time) = (Vec::new(), 0);
        Ok(Self { blocks, last_error, interfaces: Vec::new(), records: 0, data, time })
    }

    /// Returns the next record; `None` at the end.
    ///
    /// # Errors
    ///
    /// The file is damaged or cut off, or it cannot be read. No record follows an error.
    pub(crate) fn next(&mut self) -> Result<Option<CapturedRecord<'_>>, Error> {
        loop {
            match self.next_block()? {
                None => return Ok(None),
                Some(BlockKind::Other) => {}
                Some(BlockKind::Record(link)) => {
                    self.records += 1;
                    let Self { records, time, data, .. } = self;
                    return Ok(Some(CapturedRecord { number: *records, time: *time, link, data }));
                }
            }
        }
    }

    /// Reads one block; `None` at the end of the file.
    fn next_block(&mut self) -> Result<Option<BlockKind>, Error> {
        loop {
            let at = self.blocks.consumed() as u64;
            let records = self.records;
            match self.blocks.next() {
                Ok((used, block)) => {
                    let interfaces = &mut self.interfaces;
                    let kind = apply_block(&block, interfaces, &mut self.data, &mut self.time);
                    drop(block);
                    self.blocks.consume(used);
                    return kind.map(Some).map_err(|problem| Error::Damaged {
                        at,
                        records,
                        problem,
                    });
                }
                Err(PcapError::Eof) => return Ok(None),
                Err(PcapError::Incomplete(_)) => {}
                Err(PcapError::BufferTooSmall) => self.grow(at)?,
                Err(PcapError::UnexpectedEof) => return Err(Error::CutOff { at, records }),
                Err(PcapError::ReadError) => return Err(self.last_error.error(at)),
                Err(_) => {
                    let problem = "lengths that contradict each other".to_owned();
                    return Err(Error::Damaged { at, records, problem });
                }
            }
            if self.blocks.refill().is_err() {
                return Err(self.last_error.error(at));
            }
        }
    }

    /// Enlarges the buffer for a block longer than the buffer.
    fn grow(&mut self, at: u64) -> Result<(), Error> {
        let room = self.blocks.data().len().max(BUFFER_SIZE) * 2;
        if room <= MAX_BLOCK && self.blocks.grow(room) {
            return Ok(());
        }
        let problem = format!("a record of more than {} bytes", MAX_BLOCK / 2);
        Err(Error::Damaged { at, records: self.records, problem })
    }
}

/// Applies a block: stores a record in `data` and `time`, or updates the interfaces.
fn apply_block(
    block: &PcapBlockOwned<'_>,
    interfaces: &mut Vec<Interface>,
    data: &mut Vec<u8>,
    time: &mut i64,
) -> Result<BlockKind, String> {
    let mut store = |bytes: &[u8]| {
        data.clear();
        data.extend_from_slice(bytes);
    };
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let clock = Clock::pcap(header.is_nanosecond_precision());
            // The upper half contains other flags, for instance the FCS length.
            interfaces.push(Interface { link: header.network.0 & 0xffff, clock });
            Ok(BlockKind::Other)
        }
        PcapBlockOwned::Legacy(record) => {
            let interface = interfaces.first().ok_or("a record before the header")?;
            store(record.data);
            *time = interface.clock.of_parts(record.ts_sec, record.ts_usec);
            Ok(BlockKind::Record(interface.link))
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            interfaces.clear();
            Ok(BlockKind::Other)
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
            let clock = Clock::pcapng(description.if_tsresol, description.if_tsoffset);
            interfaces.push(Interface { link: description.linktype.0, clock });
            Ok(BlockKind::Other)
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(record)) => {
            let interface = interfaces.get(record.if_id as usize).ok_or_else(|| {
                format!("a packet of interface {}, which is unknown", record.if_id)
            })?;
            store(record.packet_data());
            *time = interface.clock.of_ticks(record.ts_high, record.ts_low);
            Ok(BlockKind::Record(interface.link))
        }
        PcapBlockOwned::NG(Block::SimplePacket(record)) => {
            // The block has no timestamp; the previous record's time remains.
            let interface = interfaces.first().ok_or("a packet without an interface")?;
            store(record.packet_data());
            Ok(BlockKind::Record(interface.link))
        }
        PcapBlockOwned::NG(_) => Ok(BlockKind::Other),
    }
}
