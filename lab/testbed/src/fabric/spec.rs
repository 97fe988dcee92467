//! Settings of a fabric.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use apus_workload::{Rate, units};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use apus_measure::error::{Error, require};

/// Maximum number of hosts in a fabric. Chosen by us: each host is a process and an interface, and
/// has an entry for every other; 128 hosts are up in a few seconds.
pub const MAX_NODES: usize = 128;

/// Maximum delay of a link.
const LONGEST_DELAY: Duration = Duration::from_secs(1);

/// Settings of a fabric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Number of hosts, 2 to [`MAX_NODES`].
    pub nodes: usize,
    /// Rate of every link on the wire, up to 100 Gbit/s. Preamble, checksum and the gap between
    /// frames (24 bytes in all) count.
    #[serde(with = "in_words")]
    pub link: Rate,
    /// Maximum bytes queued at a port of the switch per priority: one full frame to 4 GB.
    pub buffer: u64,
    /// Length of the longest IP packet, 1280 to 9216 bytes.
    pub mtu: u32,
    /// Share of the packets that the switch drops at random, 0 to 0.5.
    pub loss: f64,
    /// Propagation delay of a host's link to the switch, in addition to queueing; up to 1 s. The
    /// kernel needs `netem`.
    pub delay: Duration,
    /// Shaping of a host's own link.
    pub uplink: Uplink,
}

/// Shaping of a host's own link to the switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Uplink {
    /// Limited to the link's rate, with one queue of 1000 full frames, like a network card. It
    /// costs a second timer per packet, halving the rate that the cores of one machine can emulate.
    Shaped,
    /// Not limited: all queues are in the switch.
    #[default]
    Free,
}

impl Default for Spec {
    /// Returns 8 hosts, 200 Mbit/s, 1 MB of buffer, Ethernet's 1500 bytes, no loss.
    fn default() -> Self {
        Self {
            nodes: 8,
            link: Rate::from_mbps(200).expect("a rate that there is"),
            buffer: 1_000_000,
            mtu: 1_500,
            loss: 0.0,
            delay: Duration::ZERO,
            uplink: Uplink::default(),
        }
    }
}

impl Spec {
    /// Checks that the fabric can be built.
    ///
    /// # Errors
    ///
    /// A setting is out of range.
    pub fn check(&self) -> Result<(), Error> {
        require(
            (2..=MAX_NODES).contains(&self.nodes),
            "nodes",
            "a fabric has 2 to 128 hosts; try 4",
        )?;
        require(self.link.mbps() <= 100_000, "link", "a link has 1mbit to 100gbit; try 200mbit")?;
        require((1_280..=9_216).contains(&self.mtu), "mtu", "1280 to 9216 bytes; try 1500")?;
        let buffer = u64::from(self.frame())..=4_000_000_000;
        require(
            buffer.contains(&self.buffer),
            "buffer",
            "a buffer holds at least one full frame, the MTU and 14 bytes, and up to 4GB; try 1MB",
        )?;
        require((0.0..=0.5).contains(&self.loss), "loss", "a share from 0 to 0.5; try 0.001")?;
        require(self.delay <= LONGEST_DELAY, "delay", "0 to 1s; try 10us")
    }

    /// Returns the bytes of the longest frame, with its Ethernet header.
    pub(super) const fn frame(&self) -> u32 {
        self.mtu + 14
    }

    /// Returns the link rate in bits per second.
    pub(super) const fn bits_per_second(&self) -> u64 {
        self.link.mbps() * 1_000_000
    }

    /// Returns the settings, keyed by the names of the options.
    #[must_use]
    pub fn settings(&self) -> Map<String, Value> {
        let values = [
            ("nodes", json!(self.nodes)),
            ("link", json!(units::format_rate(self.link))),
            ("buffer", json!(self.buffer)),
            ("mtu", json!(self.mtu)),
            ("loss", json!(self.loss)),
            ("delay_us", json!(self.delay.as_secs_f64() * 1e6)),
            ("uplink", json!(self.uplink.to_string())),
        ];
        values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// Formats as `4 hosts, 200mbit, buffers of 1000000 bytes, MTU 1500, uplinks free`.
impl fmt::Display for Spec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nodes, buffer, mtu, loss, uplink, .. } = self;
        let link = units::format_rate(self.link);
        write!(
            formatter,
            "{nodes} hosts, {link}, buffers of {buffer} bytes, MTU {mtu}, uplinks {uplink}"
        )?;
        if *loss > 0.0 {
            write!(formatter, ", loss {loss}")?;
        }
        if !self.delay.is_zero() {
            write!(formatter, ", delay {:?}", self.delay)?;
        }
        Ok(())
    }
}

impl fmt::Display for Uplink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Shaped => "shaped",
            Self::Free => "free",
        })
    }
}

impl FromStr for Uplink {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "shaped" => Ok(Self::Shaped),
            "free" => Ok(Self::Free),
            _ => Err("write shaped (the link's rate) or free (no limit)".to_owned()),
        }
    }
}

/// Serialization of a rate as text with a unit, like `200mbit`.
mod in_words {
    use apus_workload::{Rate, units};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(rate: &Rate, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&units::format_rate(*rate))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Rate, D::Error> {
        units::rate(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_can_be_built() {
        Spec::default().check().unwrap();
    }

    #[test]
    fn a_setting_out_of_range_is_refused_with_its_name_and_a_valid_value() {
        let good = Spec::default;
        let wrong = [
            ("nodes", Spec { nodes: 1, ..good() }),
            ("nodes", Spec { nodes: 129, ..good() }),
            ("link", Spec { link: Rate::from_mbps(200_000).unwrap(), ..good() }),
            ("mtu", Spec { mtu: 1_279, ..good() }),
            ("mtu", Spec { mtu: 9_217, ..good() }),
            ("buffer", Spec { buffer: 1_513, ..good() }),
            ("buffer", Spec { buffer: 5_000_000_000, ..good() }),
            ("loss", Spec { loss: -0.1, ..good() }),
            ("loss", Spec { loss: 0.6, ..good() }),
            ("loss", Spec { loss: f64::NAN, ..good() }),
            ("delay", Spec { delay: Duration::from_secs(2), ..good() }),
        ];
        for (expected, spec) in wrong {
            match spec.check() {
                Err(Error::Option { option, problem }) => {
                    assert_eq!(option, expected);
                    assert!(problem.contains("try "), "{problem}");
                }
                other => panic!("{expected}: {other:?}"),
            }
        }
    }

    #[test]
    fn settings_survive_serialization() {
        let spec = Spec { uplink: Uplink::Shaped, loss: 0.001, ..Spec::default() };
        let text = serde_json::to_string(&spec).unwrap();
        assert!(text.contains(r#""link":"200mbit""#) && text.contains(r#""uplink":"shaped""#));
        assert_eq!(serde_json::from_str::<Spec>(&text).unwrap(), spec);
    }

    #[test]
    fn only_unusual_settings_appear_in_the_text() {
        let words = Spec { nodes: 4, ..Spec::default() }.to_string();
        assert_eq!(words, "4 hosts, 200mbit, buffers of 1000000 bytes, MTU 1500, uplinks free");
        let delay = Duration::from_micros(10);
        let words = Spec { loss: 0.001, delay, ..Spec::default() }.to_string();
        assert!(words.ends_with(", loss 0.001, delay 10µs"), "{words}");
    }

    #[test]
    fn an_uplink_is_parsed_from_what_it_prints() {
        for uplink in [Uplink::Shaped, Uplink::Free] {
            assert_eq!(uplink.to_string().parse(), Ok(uplink));
        }
        assert!("fast".parse::<Uplink>().unwrap_err().contains("shaped"));
    }
}
