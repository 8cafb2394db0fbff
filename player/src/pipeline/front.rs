//! Everything up to the sinks, in one bin: sources, decoders, combiner.
//!
//! The bin's state is locked: playing and pausing concern the sinks alone. To
//! seek, the bin is taken down to READY, which ends every thread in it however
//! it waits, and up again. No flush event has to find its way through sources,
//! parser, decoder and aggregator, so none can meet another one there.

use super::combine::{Combine, ENHANCEMENT_CAPS, Job};
use super::error::PipelineError;
use super::schedule::Schedule;
use gst::prelude::*;
use gstreamer as gst;
use gstreamer_app as gst_app;
use media::{Manifest, container};
use std::sync::Arc;

/// Pictures between the decoder and the combiner, so that both can work.
const DECODED_PICTURES: u32 = 2;
/// Pictures between the combiner and the sink, so that one slow picture is not
/// late.
const COMBINED_PICTURES: u32 = 3;

/// The sources, decoders and the combiner of one title.
#[derive(Debug)]
pub(crate) struct Front {
    bin: gst::Bin,
    pub(crate) base: gst_app::AppSrc,
    pub(crate) enhancements: Vec<gst_app::AppSrc>,
    pub(crate) sound: Option<gst_app::AppSrc>,
    /// Where combined pictures leave the combiner, still I420.
    pub(crate) pictures: gst::Pad,
}

/// Makes one element, or tells what to install.
pub(crate) fn make(name: &'static str) -> Result<gst::Element, PipelineError> {
    gst::ElementFactory::make(name)
        .build()
        .map_err(|_| PipelineError::Missing { element: name, package: package(name) })
}

fn package(element: &str) -> &'static str {
    match element {
        "avdec_h264" | "avdec_aac" => "gstreamer1.0-libav",
        "h264parse" => "gstreamer1.0-plugins-bad",
        "ximagesink" => "gstreamer1.0-x",
        "autoaudiosink" | "autovideosink" => "gstreamer1.0-plugins-good",
        _ => "gstreamer1.0-plugins-base",
    }
}

fn source(name: &str, caps: &gst::Caps) -> gst_app::AppSrc {
    // Bounded by the feed, which pushes a block only if it fits: an appsrc that
    // blocks would block the feed in the middle of a block.
    gst_app::AppSrc::builder()
        .name(name)
        .caps(caps)
        .format(gst::Format::Time)
        .is_live(false)
        .do_timestamp(false)
        .block(false)
        .max_bytes(0)
        .build()
}

fn queue(pictures: u32) -> Result<gst::Element, PipelineError> {
    let queue = make("queue")?;
    queue.set_property("max-size-buffers", pictures);
    queue.set_property("max-size-bytes", 0_u32);
    queue.set_property("max-size-time", 0_u64);
    Ok(queue)
}

fn base_caps(manifest: &Manifest) -> Result<gst::Caps, PipelineError> {
    let layer = manifest.layers.first().ok_or_else(|| PipelineError::Title("no layers".into()))?;
    let config = container::avc_config(&layer.init).map_err(PipelineError::title)?;
    let side = |side: u32| i32::try_from(side).map_err(PipelineError::title);
    Ok(gst::Caps::builder("video/x-h264")
        .field("stream-format", "avc")
        .field("alignment", "au")
        .field("codec_data", gst::Buffer::from_slice(config.to_vec()))
        .field("width", side(layer.width)?)
        .field("height", side(layer.height)?)
        .build())
}

fn sound_caps(audio: &media::manifest::Audio) -> Result<gst::Caps, PipelineError> {
    Ok(gst::Caps::builder("audio/mpeg")
        .field("mpegversion", 4_i32)
        .field("stream-format", "raw")
        .field("framed", true)
        .field("codec_data", gst::Buffer::from_slice(audio.config.clone()))
        .field("rate", i32::try_from(audio.sample_rate).map_err(PipelineError::title)?)
        .field("channels", i32::from(audio.channels))
        .build())
}

impl Front {
    /// Builds the bin. `last` are the elements between combiner and video sink.
    pub(crate) fn new(
        manifest: &Manifest,
        schedule: Arc<Schedule>,
        sound: bool,
        last: &[gst::Element],
    ) -> Result<Self, PipelineError> {
        let bin = gst::Bin::builder().name("front").build();
        let combine = Combine::for_title(Job::new(manifest, schedule)?)?;
        let base = source("base", &base_caps(manifest)?);
        let decoder = make("avdec_h264")?;
        // Frame threads would hold pictures back; a late picture is still shown.
        decoder.set_property("max-threads", 1_i32);
        decoder.set_property("qos", false);
        let (before, after) = (queue(DECODED_PICTURES)?, queue(COMBINED_PICTURES)?);
        let mut chain = vec![base.clone().upcast(), make("h264parse")?, decoder, before];
        chain.extend([combine.clone().upcast(), after]);
        chain.extend_from_slice(last);
        add_and_link(&bin, &chain)?;
        ghost(&bin, "video", chain.last())?;
        let enhancements = Self::add_enhancements(&bin, manifest, &combine)?;
        let audio = manifest.audio.as_ref().filter(|_| sound);
        let sound = audio.map(|audio| Self::add_sound(&bin, audio)).transpose()?;
        let pictures = combine.static_pad("src").ok_or_else(|| PipelineError::build("no src pad"))?;
        bin.set_locked_state(true);
        Ok(Self { bin, base, enhancements, sound, pictures })
    }

    fn add_enhancements(
        bin: &gst::Bin,
        manifest: &Manifest,
        combine: &Combine,
    ) -> Result<Vec<gst_app::AppSrc>, PipelineError> {
        let caps = gst::Caps::new_empty_simple(ENHANCEMENT_CAPS);
        let mut sources = Vec::new();
        for number in 0..manifest.layers.len().saturating_sub(1) {
            let source = source(&format!("enhancement{}", number + 1), &caps);
            bin.add(&source).map_err(PipelineError::build)?;
            source
                .link_pads(Some("src"), combine, Some(&format!("enh_{number}")))
                .map_err(PipelineError::build)?;
            sources.push(source);
        }
        Ok(sources)
    }

    fn add_sound(bin: &gst::Bin, audio: &media::manifest::Audio) -> Result<gst_app::AppSrc, PipelineError> {
        let source = source("sound", &sound_caps(audio)?);
        let chain = [
            source.clone().upcast(),
            make("avdec_aac")?,
            make("audioconvert")?,
            make("audioresample")?,
            // Decodes ahead of the sink, as far as the source has sound.
            make("queue")?,
        ];
        add_and_link(bin, &chain)?;
        ghost(bin, "audio", chain.last())?;
        Ok(source)
    }

    pub(crate) fn bin(&self) -> &gst::Bin {
        &self.bin
    }

    /// Ends every thread and drops all data. What is downstream must flush, or
    /// a thread that waits there is waited for.
    pub(crate) fn empty(&self) -> Result<(), PipelineError> {
        self.bin.set_state(gst::State::Ready).map(drop).map_err(PipelineError::build)
    }

    /// Starts the threads; data pushed from now on flow.
    pub(crate) fn run(&self) -> Result<(), PipelineError> {
        self.bin.set_state(gst::State::Playing).map(drop).map_err(PipelineError::build)
    }

    /// Frees everything.
    pub(crate) fn close(&self) {
        if self.bin.set_state(gst::State::Null).is_err() {
            tracing::error!("the decoders did not stop");
        }
    }

    /// All sources, Base last.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &gst_app::AppSrc> {
        self.enhancements.iter().chain(&self.sound).chain(std::iter::once(&self.base))
    }
}

fn add_and_link(bin: &gst::Bin, chain: &[gst::Element]) -> Result<(), PipelineError> {
    bin.add_many(chain).map_err(PipelineError::build)?;
    for (from, to) in chain.iter().zip(chain.iter().skip(1)) {
        // The combiner has one always-pad of each direction that fits.
        from.link(to).map_err(PipelineError::build)?;
    }
    Ok(())
}

fn ghost(bin: &gst::Bin, name: &str, last: Option<&gst::Element>) -> Result<(), PipelineError> {
    let pad = last.and_then(|last| last.static_pad("src"));
    let pad = pad.ok_or_else(|| PipelineError::build("an element without a source pad"))?;
    let ghost = gst::GhostPad::builder_with_target(&pad).map_err(PipelineError::build)?.name(name).build();
    bin.add_pad(&ghost).map_err(PipelineError::build)
}
