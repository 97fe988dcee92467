//! Cached bytes of a file.

use bytes::Bytes;

use super::extents::{Extent, Extents};

/// Cached bytes of a file: written bytes that may not be applied yet, and some bytes that were
/// read.
///
/// A byte in no extent is at the server if it lies below a bound, and 0 otherwise.
#[derive(Clone, Debug)]
pub(in crate::client) struct Contents {
    extents: Extents,
    /// Bytes that are not cached are at the server below this position, and a hole from there on.
    server_below: u64,
}

impl Contents {
    /// Returns the contents of a file with no cached bytes.
    pub(in crate::client) fn at_server() -> Self {
        Self { extents: Extents::default(), server_below: u64::MAX }
    }

    /// Contents of a file that the client has created.
    pub(in crate::client) fn empty() -> Self {
        Self { extents: Extents::default(), server_below: 0 }
    }

    /// Returns the bytes that are kept in memory.
    pub(in crate::client) fn kept(&self) -> usize {
        self.extents.bytes()
    }

    /// Puts bytes that batch `batch` writes.
    pub(in crate::client) fn write(&mut self, offset: u64, bytes: Bytes, batch: u64) {
        if bytes.is_empty() {
            return;
        }
        self.forget(offset, bytes.len() as u64);
        self.extents.insert(offset, Extent { bytes, batch });
    }

    /// Adds bytes that were read at the server, where no bytes are cached and no hole is known: the
    /// file may have been truncated after the read.
    pub(in crate::client) fn fill_from_server(&mut self, offset: u64, bytes: &Bytes) {
        let end = (offset + bytes.len() as u64).min(self.server_below);
        let mut at = offset;
        while at < end {
            if let Some((start, extent)) = self.covering(at) {
                at = start + extent.len();
                continue;
            }
            let next = self.extents.first_in(at..end).map_or(end, |(start, _)| start);
            let slice = bytes.slice((at - offset) as usize..(next - offset) as usize);
            self.extents.insert(at, Extent { bytes: slice, batch: 0 });
            at = next;
        }
    }

    /// Drops the bytes from `size` on, which are a hole from now on.
    pub(in crate::client) fn truncate(&mut self, size: u64) {
        self.forget(size, u64::MAX - size);
        self.server_below = self.server_below.min(size);
    }

    /// Extends the file beyond `size`, with a hole at first.
    pub(in crate::client) fn extend(&mut self, size: u64) {
        self.server_below = self.server_below.min(size);
    }

    /// Marks all uncached bytes below `end` as present at the server, now or once the log is
    /// applied.
    pub(in crate::client) fn extend_to_server(&mut self, end: u64) {
        self.server_below = self.server_below.max(end);
    }

    /// Drops a range: it is at the server, where it was before.
    pub(in crate::client) fn forget(&mut self, offset: u64, length: u64) {
        let end = offset.saturating_add(length);
        if let Some((start, extent)) = self.covering(offset) {
            let extent = extent.clone();
            let extent_end = start + extent.len();
            self.extents.remove(start);
            if start < offset {
                self.extents.insert(start, extent.cut(0, offset - start));
            }
            if end < extent_end {
                self.extents.insert(end, extent.cut(end - start, extent_end - start));
            }
        }
        while let Some((start, extent)) = self.extents.first_in(offset..end) {
            let extent_end = start + extent.len();
            let rest = (end < extent_end).then(|| extent.cut(end - start, extent_end - start));
            self.extents.remove(start);
            if let Some(rest) = rest {
                self.extents.insert(end, rest);
            }
        }
    }

    /// Returns bytes in pieces, or the first range that must be read at the server.
    pub(in crate::client) fn read(
        &self,
        offset: u64,
        length: u64,
    ) -> Result<Vec<Bytes>, (u64, u64)> {
        let end = offset + length;
        let (mut at, mut pieces) = (offset, Vec::new());
        while at < end {
            if let Some((start, extent)) = self.covering(at) {
                let stop = end.min(start + extent.len());
                pieces.push(extent.bytes.slice((at - start) as usize..(stop - start) as usize));
                at = stop;
                continue;
            }
            let next = self.extents.first_in(at..end).map_or(end, |(start, _)| start);
            if at < self.server_below {
                let last_gap = self.last_gap(at, end);
                return Err((at, last_gap.min(self.server_below) - at));
            }
            pieces.extend(zeros(next - at));
            at = next;
        }
        Ok(pieces)
    }

    /// Drops bytes of batches up to `applied`, which are at the server. `size` is the length of the
    /// file there; it was not truncated since.
    pub(in crate::client) fn clean(&mut self, applied: u64, size: u64) {
        self.extents.retain(|_, extent| extent.batch > applied);
        self.server_below = self.server_below.max(size);
    }

    /// Marks bytes of batches up to `applied` as read: they are at the server and stay cached.
    pub(in crate::client) fn keep_clean(&mut self, applied: u64, size: u64) {
        self.extents.for_each(|extent| {
            if extent.batch <= applied {
                extent.batch = 0;
            }
        });
        self.server_below = self.server_below.max(size);
    }

    /// Drops read bytes outside of a range.
    pub(in crate::client) fn forget_read_outside(&mut self, (from, to): (u64, u64)) {
        self.extents.retain(|start, extent| {
            extent.batch != 0 || (start < to && start + extent.len() > from)
        });
    }

    /// Drops read bytes.
    pub(in crate::client) fn forget_read(&mut self) {
        self.extents.retain(|_, extent| extent.batch != 0);
    }

    /// The extent that has byte `at`.
    fn covering(&self, at: u64) -> Option<(u64, &Extent)> {
        self.extents.last_until(at).filter(|(start, extent)| at < start + extent.len())
    }

    /// Returns the end of the last gap in a range that starts with a gap.
    fn last_gap(&self, from: u64, to: u64) -> u64 {
        match self.covering(to - 1) {
            Some((start, _)) if start > from => self.last_gap(from, start),
            _ => to,
        }
    }
}

/// Pieces of zeros.
fn zeros(mut length: u64) -> Vec<Bytes> {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let mut pieces = Vec::new();
    while length > 0 {
        let part = length.min(ZEROS.len() as u64);
        pieces.push(Bytes::from_static(&ZEROS[..part as usize]));
        length -= part;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(contents: &Contents, offset: u64, length: u64) -> Result<String, (u64, u64)> {
        let pieces = contents.read(offset, length)?;
        Ok(String::from_utf8(pieces.concat()).unwrap().replace('\0', "0"))
    }

    #[test]
    fn writes_lie_over_each_other() {
        let mut contents = Contents::empty();
        contents.write(2, "abcdef".into(), 1);
        contents.write(4, "XY".into(), 2);
        assert_eq!(text(&contents, 0, 10).unwrap(), "00abXYef00");
        contents.write(0, "longer than all".into(), 3);
        assert_eq!(text(&contents, 0, 15).unwrap(), "longer than all");
        contents.truncate(6);
        assert_eq!(text(&contents, 0, 8).unwrap(), "longer00");
    }

    #[test]
    fn what_is_at_the_server_is_read_there_once() {
        let mut contents = Contents::at_server();
        contents.write(3, "DEF".into(), 1);
        assert_eq!(contents.read(0, 10), Err((0, 10)));
        contents.fill_from_server(0, &"abcxyzghij".into());
        assert_eq!(text(&contents, 0, 10).unwrap(), "abcDEFghij");
        contents.forget_read();
        assert_eq!(contents.read(3, 5), Err((6, 2)));
        assert_eq!(text(&contents, 3, 3).unwrap(), "DEF");
        contents.clean(1, 10);
        assert_eq!(contents.read(3, 3), Err((3, 3)));
    }

    #[test]
    fn a_file_that_was_cut_has_a_hole_where_the_server_still_has_bytes() {
        let mut contents = Contents::at_server();
        contents.truncate(2);
        assert_eq!(contents.read(0, 4), Err((0, 2)));
        contents.fill_from_server(0, &"ab".into());
        assert_eq!(text(&contents, 0, 4).unwrap(), "ab00");
    }
}
