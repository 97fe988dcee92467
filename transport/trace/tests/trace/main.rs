//! Records are read as they were recorded, from the rings and from files, including malformed
//! files.

mod hostile_folder;
mod malformed_files;
mod recording;
