//! Options of an endpoint in a TOML file, the feature `toml`.

mod trace;

pub use trace::TraceSettings;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::builder::{EndpointBuilder, Engine, Shards};
use crate::engine::waiting::PollMode;
use apus_proto::Config;
use apus_socket::UdpConfig;

/// Options of an endpoint, as read from a TOML file. An absent option has the default of
/// [`EndpointBuilder`].
///
/// ```
/// use apus::{Endpoint, Settings};
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
/// let endpoint = Endpoint::builder().settings(&settings).bind("127.0.0.1:0")?;
/// # drop(endpoint);
/// # Ok(())
/// # }
/// ```
///
/// `docs/configuration.md` describes every key with its default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// How threads wait: [`EndpointBuilder::poll_mode`]. `spin`, `hybrid=MICROSECONDS` or `block`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll: Option<PollMode>,
    /// Which threads run the loop: [`EndpointBuilder::engine`]. `waiters`, `dedicated`, or
    /// `dedicated=CPU`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<Engine>,
    /// Number of shards: [`EndpointBuilder::shards`]. A number, or `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shards: Option<Shards>,
    /// Number of threads that receive requests. It is for the application, which starts them;
    /// [`EndpointBuilder`] ignores it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receivers: Option<usize>,
    /// Packets per pass of the loop: [`EndpointBuilder::receive_batch`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_batch: Option<usize>,
    /// Maximum wait of requests under overload, in microseconds: [`EndpointBuilder::max_queueing`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_queueing_usecs: Option<u64>,
    /// Timeout of calls without a deadline, in milliseconds: [`EndpointBuilder::call_timeout`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_timeout_msecs: Option<u64>,
    /// Share of its core for a dedicated engine, in per cent: [`EndpointBuilder::core_share`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_share: Option<u32>,
    /// Endpoints of this host that schedule as one: [`EndpointBuilder::host_group`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_group: Option<String>,
    /// Whether calls to peers on this host use shared memory: [`EndpointBuilder::local`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<bool>,
    /// Section `[security]`: sealed packets, [`EndpointBuilder::security`]; without it, packets are
    /// in the clear. Relative paths are relative to the file's folder.
    #[cfg(feature = "tls")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<apus_seal::tls::SecuritySettings>,
    /// Section `[udp]`: options of the socket.
    #[serde(skip_serializing_if = "UdpSettings::is_empty")]
    pub udp: UdpSettings,
    /// Section `[trace]`: triggers and files of the time trace.
    #[serde(skip_serializing_if = "TraceSettings::is_empty")]
    pub trace: TraceSettings,
    /// Section `[protocol]`: parameters of the protocol by their names in [`Config`].
    #[serde(skip_serializing_if = "is_default")]
    pub protocol: Config,
}

/// Options of the UDP socket: [`UdpConfig`] without the address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UdpSettings {
    /// Bytes that the system queues for the socket: [`UdpConfig::receive_buffer`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_buffer: Option<usize>,
    /// Bytes that the system accepts before the socket is full: [`UdpConfig::send_buffer`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<usize>,
    /// Length of the longest IP packet in bytes: [`UdpConfig::max_ip_packet`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ip_packet: Option<usize>,
    /// Whether one system call may send several packets: [`UdpConfig::segmentation_offload`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segmentation_offload: Option<bool>,
    /// Whether the system merges received packets: [`UdpConfig::receive_offload`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_offload: Option<bool>,
    /// Whether packets carry their priority as traffic class: [`UdpConfig::priorities`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priorities: Option<bool>,
    /// Whether ICMP errors are read: [`UdpConfig::reports`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reports: Option<bool>,
    /// Microseconds of busy polling of the interface by the kernel: [`UdpConfig::busy_poll_usecs`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_poll_usecs: Option<u32>,
    /// Number of sends after which a peer gets a connected socket: [`UdpConfig::connect_after`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_after: Option<u32>,
    /// Maximum wait of packets from the middle of long messages, in microseconds:
    /// [`UdpConfig::receive_coalescing_usecs`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_coalescing_usecs: Option<u32>,
    /// Whether to use IPv6: [`UdpConfig::ipv6`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6: Option<bool>,
}

/// The reason why settings could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("{}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The text is no valid TOML, or has an unknown key or an invalid value.
    #[error("{}{source}", place(file.as_deref()))]
    Invalid {
        /// The file, if the text is from one.
        file: Option<PathBuf>,
        /// The problem, its place, and the expected value.
        source: Box<toml::de::Error>,
    },
}

fn place(file: Option<&Path>) -> String {
    file.map(|file| format!("{}: ", file.display())).unwrap_or_default()
}

impl Settings {
    /// Reads a TOML file.
    ///
    /// # Errors
    ///
    /// [`SettingsError`]: the file cannot be read, or has an unknown key or an invalid value.
    pub fn read(file: impl AsRef<Path>) -> Result<Self, SettingsError> {
        let file = file.as_ref();
        let text = std::fs::read_to_string(file)
            .map_err(|source| SettingsError::Read { file: file.to_owned(), source })?;
        let settings = parse(&text, Some(file))?;
        Ok(settings.in_folder(file.parent().unwrap_or(Path::new(""))))
    }

    /// Returns the settings that differ from the defaults as TOML, for [`Settings::read`].
    #[must_use]
    pub fn toml(&self) -> String {
        let mut table = toml::Table::try_from(self).expect("names and numbers");
        // `Config` serialises all parameters of the protocol: leave out those with their default.
        if let Some(toml::Value::Table(protocol)) = table.get_mut("protocol") {
            let usual = toml::Table::try_from(Config::default()).expect("names and numbers");
            protocol.retain(|name, value| usual.get(name) != Some(value));
        }
        toml::to_string(&table).expect("a table")
    }

    /// Returns the settings with the paths of keys resolved against `folder`.
    #[cfg(feature = "tls")]
    fn in_folder(mut self, folder: &Path) -> Self {
        self.security = self.security.map(|security| security.in_folder(folder));
        self
    }

    #[cfg(not(feature = "tls"))]
    const fn in_folder(self, _folder: &Path) -> Self {
        self
    }

    /// Sets all options that these settings have.
    fn apply<E>(&self, builder: EndpointBuilder<E>) -> EndpointBuilder<E> {
        let Self {
            poll,
            engine,
            shards,
            receivers: _,
            receive_batch,
            max_queueing_usecs,
            call_timeout_msecs,
            core_share,
            host_group,
            local,
            ..
        } = self;
        let mut builder = builder.config(self.protocol.clone()).udp(self.udp.config());
        if let Some(poll) = poll {
            builder = builder.poll_mode(*poll);
        }
        if let Some(engine) = engine {
            builder = builder.engine(*engine);
        }
        if let Some(shards) = shards {
            builder = builder.shards(*shards);
        }
        if let Some(packets) = receive_batch {
            builder = builder.receive_batch(*packets);
        }
        if let Some(usecs) = max_queueing_usecs {
            builder = builder.max_queueing(Duration::from_micros(*usecs));
        }
        if let Some(msecs) = call_timeout_msecs {
            builder = builder.call_timeout(Duration::from_millis(*msecs));
        }
        if let Some(percent) = core_share {
            builder = builder.core_share(*percent);
        }
        if let Some(name) = host_group {
            builder = builder.host_group(name);
        }
        if let Some(local) = local {
            builder = builder.local(*local);
        }
        #[cfg(feature = "tls")]
        if let Some(security) = &self.security {
            builder = builder.security(apus_seal::tls::Security::new(security.clone()));
        }
        self.trace.apply(builder)
    }
}

impl<E> EndpointBuilder<E> {
    /// Sets the options that `settings` has; [`EndpointBuilder::config`] and
    /// [`EndpointBuilder::udp`] are replaced as a whole. Needs the feature `toml`.
    pub fn settings(self, settings: &Settings) -> Self {
        settings.apply(self)
    }
}

impl std::str::FromStr for Settings {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, SettingsError> {
        parse(text, None)
    }
}

fn parse(text: &str, file: Option<&Path>) -> Result<Settings, SettingsError> {
    toml::from_str(text).map_err(|source| SettingsError::Invalid {
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
            connect_after: self.connect_after.unwrap_or(usual.connect_after),
            receive_coalescing_usecs: self
                .receive_coalescing_usecs
                .unwrap_or(usual.receive_coalescing_usecs),
            // A parameter of the protocol, which sets it.
            spray_ports: usual.spray_ports,
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
            format!("{:?}", EndpointBuilder::default().settings(&settings)),
            format!("{:?}", EndpointBuilder::default())
        );
    }

    #[test]
    fn every_key_reaches_the_builder() {
        let text = "
            poll = 'hybrid=7'
            engine = 'dedicated=3'
            shards = 5
            receivers = 2
            receive_batch = 9
            max_queueing_usecs = 1234
            call_timeout_msecs = 4321
            core_share = 42
            host_group = 'eth7'
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
            connect_after = 257
            receive_coalescing_usecs = 66
            ipv6 = false
            [trace]
            folder = 'left/behind'
            max_files = 77
            slow_rpc_usecs = 10001
            restart = true
            lost_packet = true
            freeze_peers = true
            obey_peers = true
            [protocol]
            unsched_bytes_min = 12345
        ";
        let settings: Settings = text.parse().unwrap();
        let builder = format!("{:?}", EndpointBuilder::default().settings(&settings));
        for expected in [
            "poll: Hybrid(7µs)",
            "engine: Dedicated { cpu: Some(3) }",
            "shards: Count(5)",
            "receive_batch: 9",
            "max_queueing: 1.234ms",
            "call_timeout: 4.321s",
            "core_share: 42",
            "host_group: Some(\"eth7\")",
            "local: false",
            "receive_buffer: 1111111",
            "send_buffer: 222222",
            "max_ip_packet: 1500",
            "segmentation_offload: false",
            "receive_offload: false",
            "priorities: false",
            "reports: false",
            "busy_poll_usecs: 55",
            "connect_after: 257",
            "receive_coalescing_usecs: 66",
            "ipv6: false",
            "TraceFiles { folder: \"left/behind\", at_most: 77 }",
            "slow: Some(10.001ms)",
            "restart: true, lost_packet: true, freeze_peers: true, obey_peers: true",
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
            ("shards = 0", "1 to 64, or `auto`"),
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
