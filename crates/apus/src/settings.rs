//! How is an endpoint set up from a file?

mod trace;

pub use trace::TraceSettings;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::builder::{EndpointBuilder, Engine};
use crate::engine::poll_mode::PollMode;
use apus_proto::Config;
use apus_socket::UdpConfig;

/// Settings of an endpoint as a file has them: what is absent is as [`EndpointBuilder`] has it.
///
/// ```
/// use apus::Settings;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let settings: Settings = "
///     poll = 'block'
///     engine = 'dedicated=0'
///
///     [protocol]
///     num_priorities = 4
///
///     [udp]
///     receive_buffer = 8388608
/// "
/// .parse()?;
/// let endpoint = settings.builder().bind("127.0.0.1:0")?;
/// # drop(endpoint);
/// # Ok(())
/// # }
/// ```
///
/// `docs/configuration.md` explains each key with its default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// How threads wait: [`EndpointBuilder::poll_mode`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll: Option<PollMode>,
    /// Who turns the loop: [`EndpointBuilder::engine`]. `waiters`, `dedicated`, or `dedicated=CPU`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<Engine>,
    /// Threads that receive requests. For the application, which starts them; [`EndpointBuilder`] does not know it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receivers: Option<usize>,
    /// [`EndpointBuilder::receive_batch`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_batch: Option<usize>,
    /// [`EndpointBuilder::max_queueing`], in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_queueing_usecs: Option<u64>,
    /// [`EndpointBuilder::core_share`], in per cent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<u32>,
    /// [`EndpointBuilder::local`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<bool>,
    /// Settings of the socket.
    #[serde(skip_serializing_if = "UdpSettings::is_empty")]
    pub udp: UdpSettings,
    /// Time traces.
    #[serde(skip_serializing_if = "TraceSettings::is_empty")]
    pub trace: TraceSettings,
    /// Parameters of the protocol by their names: [`Config`].
    #[serde(skip_serializing_if = "is_default")]
    pub protocol: Config,
}

/// Settings of the socket: [`UdpConfig`] without the address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UdpSettings {
    /// [`UdpConfig::receive_buffer`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_buffer: Option<usize>,
    /// [`UdpConfig::send_buffer`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<usize>,
    /// [`UdpConfig::max_ip_packet`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ip_packet: Option<usize>,
    /// [`UdpConfig::segmentation_offload`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segmentation_offload: Option<bool>,
    /// [`UdpConfig::receive_offload`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_offload: Option<bool>,
    /// [`UdpConfig::priorities`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priorities: Option<bool>,
    /// [`UdpConfig::reports`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reports: Option<bool>,
    /// [`UdpConfig::busy_poll_usecs`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_poll_usecs: Option<u32>,
    /// [`UdpConfig::ipv6`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6: Option<bool>,
}

/// Why there are no settings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("{}: {source}", file.display())]
    Read {
        /// Which file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// What it says makes no sense; where, and what would.
    #[error("{}{source}", place(file.as_deref()))]
    Wrong {
        /// Which file, if it was one.
        file: Option<PathBuf>,
        /// What is wrong with it.
        source: Box<toml::de::Error>,
    },
}

fn place(file: Option<&Path>) -> String {
    file.map(|file| format!("{}: ", file.display())).unwrap_or_default()
}

impl Settings {
    /// What a file in TOML says.
    ///
    /// # Errors
    ///
    /// [`SettingsError`]: it cannot be read, or has a key or a value that there is not.
    pub fn read(file: impl AsRef<Path>) -> Result<Self, SettingsError> {
        let file = file.as_ref();
        let text = std::fs::read_to_string(file)
            .map_err(|source| SettingsError::Read { file: file.to_owned(), source })?;
        parse(&text, Some(file))
    }

    /// An endpoint's settings, with these in place of the defaults.
    pub fn builder(&self) -> EndpointBuilder {
        let Self {
            poll,
            engine,
            receivers: _,
            receive_batch,
            max_queueing_usecs,
            share,
            local,
            ..
        } = self;
        let mut builder =
            EndpointBuilder::default().config(self.protocol.clone()).udp(self.udp.config());
        if let Some(poll) = poll {
            builder = builder.poll_mode(*poll);
        }
        if let Some(engine) = engine {
            builder = builder.engine(*engine);
        }
        if let Some(packets) = receive_batch {
            builder = builder.receive_batch(*packets);
        }
        if let Some(usecs) = max_queueing_usecs {
            builder = builder.max_queueing(Duration::from_micros(*usecs));
        }
        if let Some(percent) = share {
            builder = builder.core_share(*percent);
        }
        if let Some(local) = local {
            builder = builder.local(*local);
        }
        self.trace.apply(builder)
    }

    /// As a file that [`Settings::read`] understands; only what differs from the defaults.
    ///
    /// # Panics
    ///
    /// Never: there is nothing in it that TOML could not hold.
    #[must_use]
    pub fn toml(&self) -> String {
        let mut table = toml::Table::try_from(self).expect("names and numbers");
        // Of the protocol's parameters there are many, and nobody wants to read them all.
        if let Some(toml::Value::Table(protocol)) = table.get_mut("protocol") {
            let usual = toml::Table::try_from(Config::default()).expect("names and numbers");
            protocol.retain(|name, value| usual.get(name) != Some(value));
        }
        toml::to_string(&table).expect("a table")
    }
}

impl std::str::FromStr for Settings {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, SettingsError> {
        parse(text, None)
    }
}

fn parse(text: &str, file: Option<&Path>) -> Result<Settings, SettingsError> {
    toml::from_str(text).map_err(|source| SettingsError::Wrong {
        file: file.map(Path::to_owned),
        source: Box::new(source),
    })
}

impl UdpSettings {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn config(self) -> UdpConfig {
        let usual = UdpConfig::default();
        UdpConfig {
            bind: usual.bind,
            receive_buffer: self.receive_buffer.unwrap_or(usual.receive_buffer),
            send_buffer: self.send_buffer.unwrap_or(usual.send_buffer),
            max_ip_packet: self.max_ip_packet.unwrap_or(usual.max_ip_packet),
            segmentation_offload: self.segmentation_offload.unwrap_or(usual.segmentation_offload),
            receive_offload: self.receive_offload.unwrap_or(usual.receive_offload),
            priorities: self.priorities.unwrap_or(usual.priorities),
            reports: self.reports.unwrap_or(usual.reports),
            busy_poll_usecs: self.busy_poll_usecs.unwrap_or(usual.busy_poll_usecs),
            ipv6: self.ipv6.unwrap_or(usual.ipv6),
        }
    }
}

fn is_default(config: &Config) -> bool {
    *config == Config::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_said_is_the_defaults() {
        let settings: Settings = "".parse().unwrap();
        assert_eq!(settings, Settings::default());
        assert_eq!(settings.toml(), "");
        assert_eq!(
            format!("{:?}", settings.builder()),
            format!("{:?}", EndpointBuilder::default())
        );
    }

    #[test]
    fn every_key_reaches_the_builder() {
        let text = "
            poll = 'hybrid=7'
            engine = 'dedicated=3'
            receivers = 2
            receive_batch = 9
            max_queueing_usecs = 1234
            share = 42
            local = false
            [udp]
            receive_buffer = 1111111
            send_buffer = 222222
            max_ip_packet = 1500
            segmentation_offload = false
            receive_offload = false
            priorities = false
            reports = false
            busy_poll_usecs = 55
            ipv6 = false
            [trace]
            folder = 'left/behind'
            max_files = 77
            slow_rpc_usecs = 10001
            restart = true
            lost_packet = true
            tell_peers = true
            heed_peers = true
            [protocol]
            unsched_bytes_min = 12345
        ";
        let settings: Settings = text.parse().unwrap();
        let builder = format!("{:?}", settings.builder());
        for expected in [
            "poll: Hybrid(7µs)",
            "engine: Dedicated { cpu: Some(3) }",
            "receive_batch: 9",
            "max_queueing: 1.234ms",
            "share: 42",
            "local: false",
            "receive_buffer: 1111111",
            "send_buffer: 222222",
            "max_ip_packet: 1500",
            "segmentation_offload: false",
            "receive_offload: false",
            "priorities: false",
            "reports: false",
            "busy_poll_usecs: 55",
            "ipv6: false",
            "TraceFiles { folder: \"left/behind\", at_most: 77 }",
            "slow: Some(10.001ms)",
            "restart: true, lost_packet: true, tell_peers: true, heed_peers: true",
            "unsched_bytes_min: 12345",
        ] {
            assert!(builder.contains(expected), "{expected}: {builder}");
        }
        assert_eq!(settings.receivers, Some(2));
        assert_eq!(settings.toml().parse::<Settings>().unwrap(), settings);
    }

    #[test]
    fn only_what_differs_is_written() {
        let protocol = Config::builder().unsched_bytes_min(1500).build().unwrap();
        let engine = Some(Engine::Dedicated { cpu: None });
        let settings = Settings { engine, protocol, ..Settings::default() };
        assert_eq!(
            settings.toml(),
            "engine = \"dedicated\"\n\n[protocol]\nunsched_bytes_min = 1500\n"
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (text, problem) in [
            ("pol = 'spin'", "unknown field `pol`"),
            ("poll = 'spinning'", "hybrid=MICROSECONDS"),
            ("engine = 'own'", "dedicated=CPU"),
            ("[protocol]\nmax_overcommit = 0", "max_overcommit"),
            ("[udp]\nbind = 'x'", "unknown field `bind`"),
            ("[trace]\nsample = 1", "unknown field `sample`"),
        ] {
            let error = text.parse::<Settings>().unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains("line "), "{error}");
        }
        let error = Settings::read("/no/such/file.toml").unwrap_err().to_string();
        assert!(error.starts_with("/no/such/file.toml: "), "{error}");
    }
}
