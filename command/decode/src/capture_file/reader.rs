//! Byte source of a capture, with the error that the parser drops.

use std::io::{self, Chain, Cursor, ErrorKind, Read};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Error;

/// Number of bytes that the parser needs to recognize the format: the length of a pcap file header.
/// It contains the length of the first block of a pcapng file.
const PREFIX_LEN: u64 = 24;
/// Leading bytes of a pcapng file.
const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// Upper bound for the length of the first block of a pcapng file, in bytes. Usual files have a few
/// hundred bytes there.
const MAX_SECTION_HEADER: u64 = 32 * 1024;

/// Retains the last I/O error, since the parser only reports that an error occurred.
#[derive(Clone, Debug, Default)]
pub(super) struct LastError(Arc<Mutex<Option<io::Error>>>);

impl LastError {
    /// Returns the error of the last read.
    pub(super) fn error(&self, at: u64) -> Error {
        let error = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        Error::Io { at, error: error.unwrap_or_else(|| ErrorKind::Other.into()) }
    }
}

/// A reader that retries interrupted reads and retains the error of a failed read.
pub(super) struct RetryingReader<R> {
    inner: R,
    last_error: LastError,
}

impl<R: Read> Read for RetryingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.inner.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let kind = error.kind();
                    *self.last_error.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    return Err(kind.into());
                }
                read => return read,
            }
        }
    }
}

/// The bytes read so far, followed by the rest of the file.
type PrefixedReader<R> = Chain<Cursor<Vec<u8>>, RetryingReader<R>>;

/// Reads enough of the file for the parser to recognize the format in its first read; a pipe may
/// return less per read.
pub(super) fn open<R: Read>(reader: R) -> Result<(LastError, PrefixedReader<R>), Error> {
    let last_error = LastError::default();
    let mut reader = RetryingReader { inner: reader, last_error: last_error.clone() };
    let mut first = Vec::new();
    read_more(&mut reader, PREFIX_LEN, &mut first).map_err(|_| last_error.error(0))?;
    if first.is_empty() {
        return Err(Error::Empty);
    }
    if first.starts_with(&SECTION_HEADER) {
        let rest = section_header_len(&first)?.saturating_sub(PREFIX_LEN);
        read_more(&mut reader, rest, &mut first).map_err(|_| last_error.error(PREFIX_LEN))?;
    }
    Ok((last_error, Cursor::new(first).chain(reader)))
}

fn read_more(reader: &mut impl Read, bytes: u64, into: &mut Vec<u8>) -> io::Result<usize> {
    reader.by_ref().take(bytes).read_to_end(into)
}

/// Returns the length of the first block of a pcapng file, read in the byte order that the file
/// declares.
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
    if length > MAX_SECTION_HEADER {
        let problem = format!("a section header of {length} bytes");
        return Err(Error::Damaged { at: 0, records: 0, problem });
    }
    Ok(length)
}
