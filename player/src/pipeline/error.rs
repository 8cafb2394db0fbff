//! What can go wrong at the player's GStreamer end.

/// Why the pipeline cannot do what it was asked. Playback that runs goes on.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// GStreamer itself cannot start.
    #[error("GStreamer cannot start: {0}")]
    Init(String),
    /// An element of the pipeline is not installed.
    #[error("the GStreamer element `{element}` is missing (Debian package {package})")]
    Missing {
        /// Name of the element.
        element: &'static str,
        /// Debian package that brings it.
        package: &'static str,
    },
    /// The elements cannot be put together or started.
    #[error("the pipeline cannot be built: {0}")]
    Build(String),
    /// The title's manifest does not describe something that can be decoded.
    #[error("the title cannot be decoded: {0}")]
    Title(String),
    /// A block was handed in that was not asked for; it was not taken.
    #[error("the pipeline asked for no block")]
    Full,
    /// The pipeline was stopped, or its feed died.
    #[error("the pipeline has stopped")]
    Stopped,
}

impl PipelineError {
    pub(super) fn build(error: impl std::fmt::Display) -> Self {
        Self::Build(error.to_string())
    }

    pub(super) fn title(error: impl std::fmt::Display) -> Self {
        Self::Title(error.to_string())
    }
}
