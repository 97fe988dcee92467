//! Helpers for tests of `apus doctor`: the files of a host, and the parsed result.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

/// Files in `/proc` and `/sys` of a host without faults.
const CLEAN: [(&str, &str); 15] = [
    ("proc/stat", "cpu  10 0 10 1000 0 0 0 0 0 0"),
    ("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0"),
    ("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0"),
    ("proc/sys/net/core/rmem_max", "4194304"),
    ("proc/sys/net/core/wmem_max", "4194304"),
    (
        "proc/self/limits",
        "Max open files            4096                 4096                 files",
    ),
    ("proc/self/cgroup", "0::/"),
    ("sys/fs/cgroup/cpu.max", "max 100000"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"),
    ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm"),
    ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state0/name", "C1"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "2"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state0/disable", "0"),
    ("sys/class/net/fab0/duplex", "full"),
];

/// A folder that replaces `/proc` and `/sys`
/// ([`DoctorOptions::root`](crate::doctor::DoctorOptions)).
#[derive(Debug)]
pub struct Root(tempfile::TempDir);

impl Root {
    /// Returns the files of a host without faults.
    ///
    /// # Panics
    ///
    /// They cannot be written.
    #[must_use]
    pub fn clean() -> Self {
        let root = Self(tempfile::tempdir().unwrap());
        CLEAN.iter().for_each(|(file, content)| root.plant(file, content));
        root
    }

    /// Replaces the content of a file, named without the first `/`.
    ///
    /// # Panics
    ///
    /// It cannot be written.
    pub fn plant(&self, file: &str, content: &str) {
        let place = self.0.path().join(file);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, content).unwrap();
    }

    /// Returns the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the folder of the sockets of running processes. Endpoints of other tests use a
    /// different folder.
    #[must_use]
    pub fn runtime(&self) -> PathBuf {
        self.path().join("run")
    }
}

/// The exit status and the JSON of `apus doctor`.
#[derive(Debug)]
pub struct Report {
    /// The exit status; `None` if a signal ended the process.
    pub status: Option<i32>,
    /// The parsed standard output.
    pub json: Value,
}

impl Report {
    /// Parses the output of the command.
    ///
    /// # Panics
    ///
    /// It is not one JSON object.
    #[must_use]
    pub fn of(output: &Output) -> Self {
        let json = serde_json::from_slice(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let json = json.unwrap_or_else(|error| panic!("{error}: {stderr}"));
        Self { status: output.status.code(), json }
    }

    /// Returns the findings.
    ///
    /// # Panics
    ///
    /// There are none.
    pub fn rows(&self) -> impl Iterator<Item = &Value> {
        self.json["rows"].as_array().unwrap().iter()
    }

    /// Returns the first finding of a check.
    ///
    /// # Panics
    ///
    /// There is none.
    #[must_use]
    pub fn row(&self, check: &str) -> &Value {
        let row = self.rows().find(|row| row["name"] == check);
        row.unwrap_or_else(|| panic!("no {check}: {}", self.json))
    }

    /// Returns the checks with an error or a warning.
    ///
    /// # Panics
    ///
    /// The result is not of the documented form.
    #[must_use]
    pub fn faults(&self) -> BTreeSet<&str> {
        let faults =
            self.rows().filter(|row| row["severity"] == "error" || row["severity"] == "warning");
        faults.map(|row| row["name"].as_str().unwrap()).collect()
    }

    /// Asserts that this check alone reports a fault, and that the finding contains its consequence
    /// and its fix.
    ///
    /// # Panics
    ///
    /// The assertion fails.
    pub fn assert_only(&self, check: &str, severity: &str, mend: &str) {
        assert_eq!(self.faults(), BTreeSet::from([check]), "{:#}", self.json);
        self.assert_fault(check, severity, mend);
    }

    /// Asserts that this check reports a fault, and that the finding contains its consequence and
    /// its fix.
    ///
    /// # Panics
    ///
    /// The assertion fails.
    pub fn assert_fault(&self, check: &str, severity: &str, mend: &str) {
        let row = self.row(check);
        assert_eq!(row["severity"], severity, "{row:#}");
        assert_eq!(self.status, Some(1), "{row:#}");
        assert!(!row["why"].as_str().unwrap().is_empty(), "{row:#}");
        let commands = row["mend"].as_array().unwrap();
        let is_listed = commands.iter().any(|each| each.as_str().unwrap().contains(mend));
        assert!(is_listed, "{mend}: {row:#}");
    }
}
