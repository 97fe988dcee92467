//! Counters and gauges that the application publishes in addition to its endpoints' counters.

use std::collections::BTreeMap;

use super::FamilyKind;

/// A counter or gauge of the application, or several that differ in one label.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ApplicationFamily {
    /// Name: lower-case letters, digits and underscores. Prometheus shows `apus_NAME`.
    pub name: String,
    /// The label that distinguishes its members; `None` if it has one member.
    pub label: Option<String>,
    /// Kind of its values: counters or gauges.
    pub kind: FamilyKind,
    /// Meaning, in one line.
    pub help: String,
    /// Values by member. The member of a family without a label is the empty string.
    pub values: BTreeMap<String, u64>,
}

impl ApplicationFamily {
    /// Returns a family with one member.
    #[must_use]
    pub fn single(name: &str, kind: FamilyKind, help: &str, value: u64) -> Self {
        let values = BTreeMap::from([(String::new(), value)]);
        Self { name: name.to_owned(), label: None, kind, help: help.to_owned(), values }
    }

    /// Returns a family whose members differ in `label`.
    #[must_use]
    pub fn labelled<'a>(
        name: &str,
        label: &str,
        kind: FamilyKind,
        help: &str,
        values: impl IntoIterator<Item = (&'a str, u64)>,
    ) -> Self {
        let values = values.into_iter().map(|(member, value)| (member.to_owned(), value)).collect();
        let label = Some(label.to_owned());
        Self { name: name.to_owned(), label, kind, help: help.to_owned(), values }
    }

    /// Returns the values with their full names, such as `fs_mount_operations.read`.
    pub fn named(&self) -> impl Iterator<Item = (String, u64)> {
        self.values.iter().map(|(member, value)| match &member[..] {
            "" => (self.name.clone(), *value),
            member => (format!("{}.{member}", self.name), *value),
        })
    }

    /// Returns the change since `before`. Gauges keep their current values.
    pub(super) fn since(&self, before: &Self) -> Self {
        let mut change = self.clone();
        if self.kind == FamilyKind::Counter {
            for (member, value) in &mut change.values {
                let earlier = before.values.get(member).copied().unwrap_or(0);
                *value = value.checked_sub(earlier).unwrap_or(*value);
            }
        }
        change
    }

    /// Adds up families of the same name, which several parts of an application have published.
    pub fn merged(all: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut merged: Vec<Self> = Vec::new();
        for family in all {
            match merged.iter_mut().find(|known| known.name == family.name) {
                Some(known) => known.add(&family),
                None => merged.push(family),
            }
        }
        merged
    }

    /// Adds the values of another part of the application.
    fn add(&mut self, other: &Self) {
        for (member, value) in &other.values {
            *self.values.entry(member.clone()).or_default() += value;
        }
    }
}
