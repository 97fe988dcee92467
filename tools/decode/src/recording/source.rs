//! Where do the bytes of a capture come from?

use std::io::{self, Chain, Cursor, ErrorKind, Read};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Error;

/// Bytes that the parser wants to see before it knows what the file is: the header of a pcap file, and more
/// than enough of the first block of a pcapng file to know how long it is.
const FIRST: u64 = 24;
/// What a pcapng file begins with.
const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// The longest first block of a pcapng file that is believed, in bytes. Usual ones have some hundred.
const LONGEST_HEADER: u64 = 32 * 1024;

/// Remembers what went wrong, since the parser does not.
#[derive(Clone, Debug, Default)]
pub(super) struct Source(Arc<Mutex<Option<io::Error>>>);

impl Source {
    /// Why the last read failed.
    pub(super) fn error(&self, at: u64) -> Error {
        let error = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        Error::Io { at, error: error.unwrap_or_else(|| ErrorKind::Other.into()) }
    }
}

/// The reader itself, which tries again when a signal came.
pub(super) struct Watched<R> {
    inner: R,
    source: Source,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.inner.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let kind = error.kind();
                    *self.source.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    return Err(kind.into());
                }
                read => return read,
            }
        }
    }
}

/// What has been read of a file, and then its rest.
type Begun<R> = Chain<Cursor<Vec<u8>>, Watched<R>>;

/// Reads so much of the file that the parser can tell what it is from its first read: a pipe may give less at
/// once.
pub(super) fn open<R: Read>(reader: R) -> Result<(Source, Begun<R>), Error> {
    let source = Source::default();
    let mut reader = Watched { inner: reader, source: source.clone() };
    let mut first = Vec::new();
    more(&mut reader, FIRST, &mut first).map_err(|_| source.error(0))?;
    if first.is_empty() {
        return Err(Error::Empty);
    }
    if first.starts_with(&SECTION_HEADER) {
        let rest = section_header_len(&first)?.saturating_sub(FIRST);
        more(&mut reader, rest, &mut first).map_err(|_| source.error(FIRST))?;
    }
    Ok((source, Cursor::new(first).chain(reader)))
}

fn more(reader: &mut impl Read, bytes: u64, into: &mut Vec<u8>) -> io::Result<usize> {
    reader.by_ref().take(bytes).read_to_end(into)
}

/// How long a pcapng file says its first block is, in the byte order that it says.
fn section_header_len(first: &[u8]) -> Result<u64, Error> {
    let cut_off = Error::CutOff { at: 0, records: 0 };
    let (Some(length), Some(order)) = (first.get(4..8), first.get(8..12)) else {
        return Err(cut_off);
    };
    let length: [u8; 4] = length.try_into().expect("four bytes");
    let length = match order {
        [0x1a, 0x2b, 0x3c, 0x4d] => u32::from_be_bytes(length),
        [0x4d, 0x3c, 0x2b, 0x1a] => u32::from_le_bytes(length),
        _ => return Err(Error::NotACapture),
    };
    let length = u64::from(length);
    if length > LONGEST_HEADER {
        let problem = format!("a section header of {length} bytes");
        return Err(Error::Damaged { at: 0, records: 0, problem });
    }
    Ok(length)
}
