//! Contents of a file: pages that were written, and holes between them, which take no memory.

use std::collections::BTreeMap;

use apus_fs_core::wire::SeekTarget;
use bytes::Bytes;

use apus_fs_core::wire::Errno;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// Largest size of a file. Source: Linux `loff_t` is signed.
const MAX_SIZE: u64 = i64::MAX as u64;

/// Bytes with holes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    size: u64,
    /// Written pages by number. Bytes beyond the end of the file are zero.
    pages: BTreeMap<u64, Vec<u8>>,
}

impl Contents {
    /// Returns the number of bytes.
    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// Returns the allocated space in units of 512 bytes.
    pub(super) fn blocks(&self) -> u64 {
        self.pages.len() as u64 * (PAGE / 512)
    }

    /// Reads up to `length` bytes; fewer only at the end.
    pub(super) fn read(&self, offset: u64, length: u64) -> Bytes {
        let length = length.min(self.size.saturating_sub(offset));
        let mut bytes = vec![0; length as usize];
        for (at, piece) in self.pieces(offset, length) {
            let start = (at - offset) as usize;
            bytes[start..start + piece.len()].copy_from_slice(piece);
        }
        bytes.into()
    }

    /// Writes bytes, and extends the file if they go beyond its end.
    pub(super) fn write(&mut self, offset: u64, mut bytes: &[u8]) -> Result<(), Errno> {
        let end = end(offset, bytes.len() as u64)?;
        let mut at = offset;
        while !bytes.is_empty() {
            let start = (at % PAGE) as usize;
            let length = bytes.len().min(PAGE as usize - start);
            let page = self.pages.entry(at / PAGE).or_insert_with(|| vec![0; PAGE as usize]);
            page[start..start + length].copy_from_slice(&bytes[..length]);
            bytes = &bytes[length..];
            at += length as u64;
        }
        if offset < end {
            self.size = self.size.max(end);
        }
        Ok(())
    }

    /// Cuts the file off, or extends it by a hole.
    pub(super) fn set_size(&mut self, size: u64) -> Result<(), Errno> {
        end(size, 0)?;
        if size < self.size {
            self.clear(size, self.size - size);
            self.pages.split_off(&size.div_ceil(PAGE));
        }
        self.size = size;
        Ok(())
    }

    /// Extends the file by a hole to `end`, if it is shorter.
    pub(super) fn extend(&mut self, offset: u64, length: u64) -> Result<(), Errno> {
        self.size = self.size.max(end(offset, length)?);
        Ok(())
    }

    /// Makes a range read as zeros; the size stays.
    pub(super) fn clear(&mut self, offset: u64, length: u64) {
        let end = offset.saturating_add(length);
        let touched: Vec<u64> = self
            .pages
            .range(offset / PAGE..end.div_ceil(PAGE))
            .map(|(number, _)| *number)
            .collect();
        for number in touched {
            let (from, to) = (offset.max(number * PAGE), end.min((number + 1) * PAGE));
            if to - from == PAGE {
                self.pages.remove(&number);
            } else if let Some(page) = self.pages.get_mut(&number) {
                page[(from - number * PAGE) as usize..(to - number * PAGE) as usize].fill(0);
            }
        }
    }

    /// Returns a part of the contents, to be [`paste`](Self::paste)d.
    pub(super) fn copy(&self, offset: u64, length: u64) -> Self {
        let length = length.min(self.size.saturating_sub(offset));
        let mut part = Self { size: length, pages: BTreeMap::new() };
        for (at, piece) in self.pieces(offset, length) {
            part.write(at - offset, piece).expect("a part of a file is no larger than a file");
        }
        part
    }

    /// Overwrites a range with other contents, holes included.
    pub(super) fn paste(&mut self, offset: u64, part: &Self) -> Result<(), Errno> {
        let end = end(offset, part.size)?;
        self.clear(offset, part.size);
        for (at, piece) in part.pieces(0, part.size) {
            self.write(offset + at, piece)?;
        }
        self.size = self.size.max(end);
        Ok(())
    }

    /// Finds the next written page or the next hole.
    pub(super) fn seek(&self, offset: u64, target: SeekTarget) -> Result<u64, Errno> {
        if offset >= self.size {
            return Err(Errno::NXIO);
        }
        match target {
            SeekTarget::Data => {
                let (number, _) = self.pages.range(offset / PAGE..).next().ok_or(Errno::NXIO)?;
                Ok(offset.max(number * PAGE))
            }
            SeekTarget::Hole => {
                let written = self.pages.range(offset / PAGE..).map(|(number, _)| *number);
                let mut next = offset / PAGE;
                for number in written {
                    if number != next {
                        break;
                    }
                    next += 1;
                }
                Ok(offset.max(next * PAGE).min(self.size))
            }
        }
    }

    /// Returns the written pieces of a range with their positions in the file.
    fn pieces(&self, offset: u64, length: u64) -> impl Iterator<Item = (u64, &[u8])> {
        let end = offset.saturating_add(length);
        let last = if length == 0 { offset / PAGE } else { end.div_ceil(PAGE) };
        self.pages.range(offset / PAGE..last).map(move |(number, page)| {
            let start = number * PAGE;
            let (from, to) = (offset.max(start), end.min(start + PAGE));
            (from, &page[(from - start) as usize..(to - start) as usize])
        })
    }
}

/// Returns the end of a range of a file.
fn end(offset: u64, length: u64) -> Result<u64, Errno> {
    offset.checked_add(length).filter(|end| *end <= MAX_SIZE).ok_or(Errno::FBIG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_cut_off_do_not_return() {
        let mut file = Contents::default();
        file.write(4090, b"0123456789").unwrap();
        file.set_size(4092).unwrap();
        file.set_size(8192).unwrap();
        assert_eq!(&file.read(4090, 10)[..], b"01\0\0\0\0\0\0\0\0");
    }

    #[test]
    fn a_huge_file_is_a_hole() {
        let mut file = Contents::default();
        file.write(1 << 40, b"end").unwrap();
        assert_eq!(file.seek(0, SeekTarget::Data), Ok(1 << 40));
        assert_eq!(file.seek(1 << 40, SeekTarget::Hole), Ok((1 << 40) + 3));
        assert_eq!(file.seek(5, SeekTarget::Hole), Ok(5));
        assert_eq!(file.seek(1 << 41, SeekTarget::Hole), Err(Errno::NXIO));
        assert_eq!(file.blocks(), 8);
        file.clear(0, u64::MAX);
        assert_eq!((file.blocks(), file.size()), (0, (1 << 40) + 3));
    }

    #[test]
    fn a_part_is_pasted_with_its_holes() {
        let mut from = Contents::default();
        from.write(0, b"ab").unwrap();
        from.set_size(9000).unwrap();
        let mut to = Contents::default();
        to.write(0, &[b'x'; 10_000]).unwrap();
        to.paste(1, &from.copy(1, u64::MAX)).unwrap();
        assert_eq!(&to.read(0, 3)[..], b"xb\0");
        assert_eq!(&to.read(8999, 3)[..], b"\0xx");
    }
}
