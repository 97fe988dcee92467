//! The configuration: a file with the settings of an endpoint.

use std::path::PathBuf;

use apus::{Settings, SettingsError};
use clap::Args;

use crate::failure::Failure;

/// A file with an endpoint's settings.
#[derive(Debug, Args)]
pub struct Configuration {
    /// Use the settings of this file, which `apus tune` writes; docs/configuration.md explains its
    /// keys
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Configuration {
    /// Returns the settings of the file; the defaults without a file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is malformed.
    pub fn read(&self) -> Result<Settings, Failure> {
        let Some(file) = &self.config else { return Ok(Settings::default()) };
        Settings::read(file).map_err(|error| Failure::Argument {
            argument: "--config".to_owned(),
            problem: match error {
                SettingsError::Invalid { .. } => error.to_string().trim_end().to_owned(),
                error => error.to_string(),
            },
        })
    }
}
