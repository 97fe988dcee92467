//! Nesting of slices on one track.
//!
//! Perfetto requires a slice that starts within another slice to end no later than it. Thread
//! records have this property up to clock precision; slices that extend past the outer slice are
//! truncated.

/// An interval on a track.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Slice<T> {
    pub(super) from: i64,
    pub(super) until: i64,
    pub(super) what: T,
}

/// Start or end of a slice.
#[derive(Debug, PartialEq)]
pub(super) enum Edge<T> {
    Begin(i64, T),
    End(i64),
}

/// Returns starts and ends in nesting order; times never decrease.
pub(super) fn nest<T>(mut slices: Vec<Slice<T>>) -> Vec<Edge<T>> {
    // Among slices that start together, the longest contains the others.
    slices.sort_by_key(|slice| (slice.from, std::cmp::Reverse(slice.until)));
    let (mut edges, mut open): (Vec<Edge<T>>, Vec<i64>) = (Vec::new(), Vec::new());
    for Slice { from, until, what } in slices {
        while let Some(end) = open.pop_if(|end| *end <= from) {
            edges.push(Edge::End(end));
        }
        let until = open.last().map_or(until, |outer| until.min(*outer)).max(from);
        edges.push(Edge::Begin(from, what));
        open.push(until);
    }
    edges.extend(open.into_iter().rev().map(Edge::End));
    edges
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slice(from: i64, until: i64, what: char) -> Slice<char> {
        Slice { from, until, what }
    }

    #[test]
    fn slices_are_truncated_to_the_outer_one() {
        let edges = nest(vec![slice(5, 12, 'b'), slice(0, 10, 'a'), slice(10, 11, 'c')]);
        let expected = [
            Edge::Begin(0, 'a'),
            Edge::Begin(5, 'b'),
            Edge::End(10),
            Edge::End(10),
            Edge::Begin(10, 'c'),
            Edge::End(11),
        ];
        assert_eq!(edges, expected);
    }

    #[test]
    fn an_empty_slice_has_an_end() {
        assert_eq!(nest(vec![slice(3, 3, 'a')]), [Edge::Begin(3, 'a'), Edge::End(3)]);
        assert_eq!(nest::<char>(Vec::new()), []);
    }

    proptest! {
        #[test]
        fn ends_match_begins_and_time_never_decreases(
            slices in prop::collection::vec((0..50_i64, 0..20_i64), 0..40),
        ) {
            let count = slices.len();
            let slices = slices.iter().map(|&(from, long)| slice(from, from + long, 'x')).collect();
            let (mut depth, mut last, mut begins) = (0_usize, i64::MIN, 0);
            for edge in nest(slices) {
                let at = match edge {
                    Edge::Begin(at, _) => {
                        (depth, begins) = (depth + 1, begins + 1);
                        at
                    }
                    Edge::End(at) => {
                        prop_assert!(depth > 0);
                        depth -= 1;
                        at
                    }
                };
                prop_assert!(at >= last);
                last = at;
            }
            prop_assert_eq!((depth, begins), (0, count));
        }
    }
}
