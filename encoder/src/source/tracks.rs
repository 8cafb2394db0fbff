//! What else a film holds, by the pads of its demuxer.

use gstreamer as gst;
use gstreamer::prelude::*;

/// Demuxers of containers that state how long they are.
const COUNTING: [&str; 2] = ["qtdemux", MATROSKA];
/// One that counts the silence before the first picture too.
pub(super) const MATROSKA: &str = "matroskademux";

fn demuxers(pipeline: &gst::Pipeline) -> impl Iterator<Item = (String, gst::Element)> {
    let elements: Vec<gst::Element> = pipeline.iterate_recurse().into_iter().flatten().collect();
    elements.into_iter().filter_map(|element| {
        let factory = element.factory()?;
        let demuxer = factory.has_type(gst::ElementFactoryType::DEMUXER);
        demuxer.then(|| (factory.name().to_string(), element))
    })
}

/// The demuxer by which the length of the film is counted, not guessed from its rate.
pub(super) fn counted(pipeline: &gst::Pipeline) -> Option<&'static str> {
    demuxers(pipeline).find_map(|(name, _)| COUNTING.into_iter().find(|known| *known == name))
}

/// Whether pictures are decoded without times: the decoder of GIFs gives all that
/// of the first, but tells how long each is displayed.
pub(super) fn untimed(pipeline: &gst::Pipeline) -> bool {
    demuxers(pipeline).any(|(name, _)| name == "avdemux_gif")
}

/// Transparency is not carried, and the decoders of VP8 and VP9 that care for it
/// cannot be found their place behind a parser: the plain ones shall be taken.
pub(super) fn pass_over_alpha() {
    for name in ["vp8alphadecodebin", "vp9alphadecodebin"] {
        if let Some(factory) = gst::ElementFactory::find(name) {
            factory.set_rank(gst::Rank::NONE);
        }
    }
}

fn transparent(pad: &gst::Pad) -> bool {
    let caps = pad.current_caps();
    let said = caps.as_ref().and_then(|caps| caps.structure(0)?.get::<bool>("codec-alpha").ok());
    said == Some(true)
}

fn adaptive(demuxer: &gst::Element) -> bool {
    let class = demuxer.factory().and_then(|factory| factory.metadata("klass").map(str::to_owned));
    class.is_some_and(|class| class.contains("Adaptive"))
}

/// What is in the film and will not be in the title, for people.
pub(super) fn left_out(pipeline: &gst::Pipeline) -> Vec<String> {
    let mut found: Vec<gst::Element> = demuxers(pipeline).map(|(_, element)| element).collect();
    // Behind one that follows a playlist each stream has a demuxer of its own.
    if found.iter().any(adaptive) {
        found.retain(adaptive);
    }
    let pads: Vec<gst::Pad> = found.iter().flat_map(gst::prelude::ElementExtManual::src_pads).collect();
    let names: Vec<String> = pads.iter().map(|pad| pad.name().to_string()).collect();
    let count = |kind: &str| names.iter().filter(|name| name.starts_with(kind)).count();
    let mut told = Vec::new();
    let tracks = |count: usize| if count == 1 { "track" } else { "tracks" };
    if let more @ 1.. = count("audio").saturating_sub(1) {
        told.push(format!("{more} other {} of sound left out; the first one is taken", tracks(more)));
    }
    if let more @ 1.. = count("video").saturating_sub(1) {
        told.push(format!("{more} other {} of pictures left out; the first one is taken", tracks(more)));
    }
    if let text @ 1.. = count("subtitle") + count("subpicture") {
        told.push(format!("{text} {} of subtitles left out: subtitles are not carried", tracks(text)));
    }
    if pads.iter().any(transparent) {
        told.push("the transparency of the pictures is left out".into());
    }
    told
}
