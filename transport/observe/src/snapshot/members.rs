//! The walk over the members of a family in an endpoint's counters, which all exporters share.

use super::{Buckets, EndpointSnapshot, Family, FamilyKind};

/// Value of a member of a family.
#[derive(Debug)]
pub(crate) enum MemberValue<'a> {
    Counter(u64),
    Gauge(u64),
    Histogram(&'a Buckets),
}

/// Returns the members of `family` in `endpoint`, with the values of their label; the only member
/// of a family without a label has an empty one.
pub(crate) fn members<'a>(
    endpoint: &'a EndpointSnapshot,
    family: &'a Family,
) -> Vec<(&'a str, MemberValue<'a>)> {
    let member = |name: &'a str| match name.split_once('.') {
        Some((own, member)) => (own == family.name).then_some(member),
        None => (name == family.name).then_some(""),
    };
    let EndpointSnapshot { counters, gauges, histograms, .. } = endpoint;
    match family.kind {
        FamilyKind::Counter => counters
            .iter()
            .filter_map(|(name, value)| Some((member(name)?, MemberValue::Counter(*value))))
            .collect(),
        FamilyKind::Gauge => gauges
            .iter()
            .filter_map(|(name, value)| Some((member(name)?, MemberValue::Gauge(*value))))
            .collect(),
        FamilyKind::Histogram => histograms
            .iter()
            .filter_map(|(name, value)| Some((member(name)?, MemberValue::Histogram(value))))
            .collect(),
    }
}
