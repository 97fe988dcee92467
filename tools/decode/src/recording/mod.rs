//! What is recorded in a capture?
//!
//! Both formats: pcap, with micro- or nanoseconds, and pcapng, with any clock, several interfaces and several
//! sections; in either byte order. The file is read as a stream, so it may be a pipe, and larger than memory.

mod clock;
mod source;

use std::io::Read;

use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Block, PcapBlockOwned, PcapError};

use self::clock::Clock;
use self::source::Source;
use crate::error::Error;

/// Room for what is read at once, in bytes.
const BUFFER: usize = 1 << 16;
/// The longest record or block that is believed, in bytes. Ours: 64 times what libpcap allows (256 KiB), since
/// blocks of pcapng may hold lists of names; who claims more is damaged or wants our memory.
const LONGEST: usize = 1 << 24;

/// A packet as it was captured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    /// Which one, from 1 on, as Wireshark counts.
    pub number: u64,
    /// Nanoseconds since 1970.
    pub time: i64,
    /// What it begins with: one of the `LINKTYPE_` numbers.
    pub link: i32,
    /// Its bytes, perhaps cut short.
    pub data: &'a [u8],
}

/// A capture that is being read.
pub(crate) struct Recording {
    blocks: Box<dyn PcapReaderIterator + Send>,
    source: Source,
    /// Those of the current section; a pcap file has one.
    interfaces: Vec<Interface>,
    records: u64,
    /// Bytes and time of the current record.
    data: Vec<u8>,
    time: i64,
}

/// Where records come from.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: i32,
    clock: Clock,
}

/// What was found in the file.
enum Found {
    /// A record, of this link type.
    Record(i32),
    /// Something else.
    Other,
}

impl Recording {
    /// Looks at the beginning of a capture.
    ///
    /// # Errors
    ///
    /// It is none, or it cannot be read.
    pub(crate) fn open(reader: impl Read + Send + 'static) -> Result<Self, Error> {
        let (source, reader) = source::open(reader)?;
        let blocks = pcap_parser::create_reader(BUFFER, reader).map_err(|error| match error {
            PcapError::Incomplete(_) | PcapError::UnexpectedEof => {
                Error::CutOff { at: 0, records: 0 }
            }
            PcapError::ReadError => source.error(0),
            PcapError::Eof => Error::Empty,
            _ => Error::NotACapture,
        })?;
        let (data, time) = (Vec::new(), 0);
        Ok(Self { blocks, source, interfaces: Vec::new(), records: 0, data, time })
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    ///
    /// The file is damaged or cut off here, or cannot be read. Nothing comes after that.
    pub(crate) fn next(&mut self) -> Result<Option<Record<'_>>, Error> {
        loop {
            match self.step()? {
                None => return Ok(None),
                Some(Found::Other) => {}
                Some(Found::Record(link)) => {
                    self.records += 1;
                    let Self { records, time, data, .. } = self;
                    return Ok(Some(Record { number: *records, time: *time, link, data }));
                }
            }
        }
    }

    /// One block of the file; `None` at its end.
    fn step(&mut self) -> Result<Option<Found>, Error> {
        loop {
            let at = self.blocks.consumed() as u64;
            let records = self.records;
            match self.blocks.next() {
                Ok((used, block)) => {
                    let interfaces = &mut self.interfaces;
                    let found = take(&block, interfaces, &mut self.data, &mut self.time);
                    drop(block);
                    self.blocks.consume(used);
                    return found.map(Some).map_err(|problem| Error::Damaged {
                        at,
                        records,
                        problem,
                    });
                }
                Err(PcapError::Eof) => return Ok(None),
                Err(PcapError::Incomplete(_)) => {}
                Err(PcapError::BufferTooSmall) => self.grow(at)?,
                Err(PcapError::UnexpectedEof) => return Err(Error::CutOff { at, records }),
                Err(PcapError::ReadError) => return Err(self.source.error(at)),
                Err(_) => {
                    let problem = "lengths that contradict each other".to_owned();
                    return Err(Error::Damaged { at, records, problem });
                }
            }
            if self.blocks.refill().is_err() {
                return Err(self.source.error(at));
            }
        }
    }

    /// Makes room for a block that is longer than the buffer.
    fn grow(&mut self, at: u64) -> Result<(), Error> {
        let room = self.blocks.data().len().max(BUFFER) * 2;
        if room <= LONGEST && self.blocks.grow(room) {
            return Ok(());
        }
        let problem = format!("a record of more than {} bytes", LONGEST / 2);
        Err(Error::Damaged { at, records: self.records, problem })
    }
}

/// Takes what a block says; `data` and `time` are a record's.
fn take(
    block: &PcapBlockOwned<'_>,
    interfaces: &mut Vec<Interface>,
    data: &mut Vec<u8>,
    time: &mut i64,
) -> Result<Found, String> {
    let mut keep = |bytes: &[u8]| {
        data.clear();
        data.extend_from_slice(bytes);
    };
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let clock = Clock::pcap(header.is_nanosecond_precision());
            // The upper half has other meanings.
            interfaces.push(Interface { link: header.network.0 & 0xffff, clock });
            Ok(Found::Other)
        }
        PcapBlockOwned::Legacy(record) => {
            let interface = interfaces.first().ok_or("a record before the header")?;
            keep(record.data);
            *time = interface.clock.of_parts(record.ts_sec, record.ts_usec);
            Ok(Found::Record(interface.link))
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            interfaces.clear();
            Ok(Found::Other)
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(described)) => {
            let clock = Clock::pcapng(described.if_tsresol, described.if_tsoffset);
            interfaces.push(Interface { link: described.linktype.0, clock });
            Ok(Found::Other)
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(record)) => {
            let interface = interfaces.get(record.if_id as usize).ok_or_else(|| {
                format!("a packet of interface {}, which is unknown", record.if_id)
            })?;
            keep(record.packet_data());
            *time = interface.clock.of_ticks(record.ts_high, record.ts_low);
            Ok(Found::Record(interface.link))
        }
        PcapBlockOwned::NG(Block::SimplePacket(record)) => {
            // It has no time: the last one is as good as any.
            let interface = interfaces.first().ok_or("a packet without an interface")?;
            keep(record.packet_data());
            Ok(Found::Record(interface.link))
        }
        PcapBlockOwned::NG(_) => Ok(Found::Other),
    }
}
