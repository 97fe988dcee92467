//! Extents of a file, in order.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;

/// Bytes in a row, without their position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::client) struct Extent {
    pub(in crate::client) bytes: Bytes,
    /// The batch that writes it; 0 if it was read.
    pub(in crate::client) batch: u64,
}

impl Extent {
    pub(in crate::client) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub(in crate::client) fn cut(&self, from: u64, to: u64) -> Self {
        Self { bytes: self.bytes.slice(from as usize..to as usize), batch: self.batch }
    }
}

/// Extents by their first byte. They do not overlap.
///
/// Most cached files are short and have one extent, which needs no separate allocation.
#[derive(Clone, Debug, Default)]
pub(in crate::client) struct Extents(Form);

#[derive(Clone, Debug, Default)]
enum Form {
    #[default]
    Empty,
    One(u64, Extent),
    Many(BTreeMap<u64, Extent>),
}

impl Extents {
    /// Adds an extent where there is none, or replaces the extent at the same start.
    pub(in crate::client) fn insert(&mut self, start: u64, extent: Extent) {
        self.0 = match std::mem::take(&mut self.0) {
            Form::Empty => Form::One(start, extent),
            Form::One(only, _) if only == start => Form::One(start, extent),
            Form::One(only, other) => Form::Many(BTreeMap::from([(only, other), (start, extent)])),
            Form::Many(mut map) => {
                map.insert(start, extent);
                Form::Many(map)
            }
        };
    }

    /// Removes the extent at `start`.
    pub(in crate::client) fn remove(&mut self, start: u64) {
        let is_empty = match &mut self.0 {
            Form::Empty => true,
            Form::One(only, _) => *only == start,
            Form::Many(map) => {
                map.remove(&start);
                map.is_empty()
            }
        };
        if is_empty {
            self.0 = Form::Empty;
        }
    }

    /// Retains the extents that satisfy `keep`.
    pub(in crate::client) fn retain(&mut self, mut keep: impl FnMut(u64, &Extent) -> bool) {
        let is_empty = match &mut self.0 {
            Form::Empty => true,
            Form::One(start, extent) => !keep(*start, extent),
            Form::Many(map) => {
                map.retain(|start, extent| keep(*start, extent));
                map.is_empty()
            }
        };
        if is_empty {
            self.0 = Form::Empty;
        }
    }

    /// Returns the last extent that starts at or before `at`.
    pub(in crate::client) fn last_until(&self, at: u64) -> Option<(u64, &Extent)> {
        match &self.0 {
            Form::Empty => None,
            Form::One(start, extent) => (*start <= at).then_some((*start, extent)),
            Form::Many(map) => map.range(..=at).next_back().map(|(start, extent)| (*start, extent)),
        }
    }

    /// Returns the first extent that starts in a range.
    pub(in crate::client) fn first_in(&self, range: Range<u64>) -> Option<(u64, &Extent)> {
        match &self.0 {
            Form::Empty => None,
            Form::One(start, extent) => range.contains(start).then_some((*start, extent)),
            Form::Many(_) if range.is_empty() => None,
            Form::Many(map) => map.range(range).next().map(|(start, extent)| (*start, extent)),
        }
    }

    /// Changes all extents in place.
    pub(in crate::client) fn for_each(&mut self, mut change: impl FnMut(&mut Extent)) {
        match &mut self.0 {
            Form::Empty => {}
            Form::One(_, extent) => change(extent),
            Form::Many(map) => map.values_mut().for_each(change),
        }
    }

    /// Returns the number of bytes.
    pub(in crate::client) fn bytes(&self) -> usize {
        match &self.0 {
            Form::Empty => 0,
            Form::One(_, extent) => extent.bytes.len(),
            Form::Many(map) => map.values().map(|extent| extent.bytes.len()).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(text: &'static str) -> Extent {
        Extent { bytes: Bytes::from_static(text.as_bytes()), batch: 0 }
    }

    /// The form for one extent and the map return the same results.
    #[test]
    fn one_extent_is_found_as_many_are() {
        let mut one = Extents::default();
        one.insert(10, extent("abcd"));
        let mut many = one.clone();
        many.insert(90, extent("z"));
        many.insert(90, extent("y"));
        for extents in [&one, &many] {
            assert_eq!(extents.last_until(9), None);
            assert_eq!(extents.last_until(10), Some((10, &extent("abcd"))));
            assert_eq!(extents.last_until(89), Some((10, &extent("abcd"))));
            assert_eq!(extents.first_in(0..10), None);
            assert_eq!(extents.first_in(10..10), None);
            assert_eq!(extents.first_in(0..11), Some((10, &extent("abcd"))));
            assert_eq!(extents.first_in(11..90), None);
        }
        assert_eq!((one.bytes(), many.bytes()), (4, 5));
        assert_eq!(many.last_until(u64::MAX), Some((90, &extent("y"))));
        many.remove(10);
        many.for_each(|extent| extent.batch = 7);
        assert_eq!(
            many.first_in(0..u64::MAX).map(|(start, extent)| (start, extent.batch)),
            Some((90, 7))
        );
        many.remove(90);
        one.remove(10);
        for extents in [&one, &many] {
            assert_eq!((extents.bytes(), extents.last_until(u64::MAX)), (0, None));
        }
    }
}
