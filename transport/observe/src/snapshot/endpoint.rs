//! Counters of one endpoint by name.

use super::{Buckets, values};
use crate::Metrics;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The counters of one endpoint.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EndpointSnapshot {
    /// Address of the endpoint.
    pub address: SocketAddr,
    /// Index of the shard, if the endpoint has several.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub shard: Option<u32>,
    /// Counters, which only increase, by name.
    #[cfg_attr(feature = "serde", serde(default))]
    pub counters: BTreeMap<String, u64>,
    /// Gauges, which have current values, by name.
    #[cfg_attr(feature = "serde", serde(default))]
    pub gauges: BTreeMap<String, u64>,
    /// Histograms by name.
    #[cfg_attr(feature = "serde", serde(default))]
    pub histograms: BTreeMap<String, Buckets>,
}

impl EndpointSnapshot {
    /// Names the counters of the endpoint at `address`.
    #[must_use]
    pub fn new(address: SocketAddr, metrics: &Metrics) -> Self {
        let named = |pairs: Vec<(String, u64)>| pairs.into_iter().collect();
        Self {
            address,
            shard: None,
            counters: named(values::counters(metrics)),
            gauges: named(values::gauges(metrics)),
            histograms: values::histograms(metrics).into_iter().collect(),
        }
    }

    /// Names the shard whose counters these are.
    #[must_use]
    pub fn of_shard(self, index: u32) -> Self {
        Self { shard: Some(index), ..self }
    }

    /// Returns whether both are of the same endpoint and shard.
    #[must_use]
    pub fn is_same_place(&self, other: &Self) -> bool {
        (self.address, self.shard) == (other.address, other.shard)
    }

    /// Returns the change since `before`. Gauges keep their current values. A counter that `before`
    /// lacks, or whose earlier value is higher because it belongs to an earlier endpoint at the
    /// same address, counts in full.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut change = self.clone();
        for (name, value) in &mut change.counters {
            let earlier = before.counters.get(name).copied().unwrap_or(0);
            *value = value.checked_sub(earlier).unwrap_or(*value);
        }
        for (name, buckets) in &mut change.histograms {
            if let Some(earlier) = before.histograms.get(name) {
                *buckets = buckets.since(earlier);
            }
        }
        change
    }

    /// Adds all counters, gauges and histograms of another endpoint.
    pub fn add(&mut self, other: &Self) {
        for (name, value) in &other.counters {
            *self.counters.entry(name.clone()).or_default() += value;
        }
        for (name, value) in &other.gauges {
            *self.gauges.entry(name.clone()).or_default() += value;
        }
        for (name, buckets) in &other.histograms {
            self.histograms.entry(name.clone()).or_default().add(buckets);
        }
    }

    /// Returns the value of a counter; 0 if there is no such counter.
    #[must_use]
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// Returns the value of a gauge; 0 if there is no such gauge.
    #[must_use]
    pub fn gauge(&self, name: &str) -> u64 {
        self.gauges.get(name).copied().unwrap_or(0)
    }

    /// Returns the sum of all counters of a family.
    #[must_use]
    pub fn sum(&self, family: &str) -> u64 {
        let member = |name: &str| name.split_once('.').map_or(name, |(family, _)| family) == family;
        self.counters.iter().filter(|(name, _)| member(name)).map(|(_, value)| value).sum()
    }
}
