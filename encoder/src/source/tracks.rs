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

/// What is in the film and will not be in the title, for people.
pub(super) fn left_out(pipeline: &gst::Pipeline) -> Vec<String> {
    let names: Vec<String> = demuxers(pipeline)
        .flat_map(|(_, element)| element.src_pads())
        .map(|pad| pad.name().to_string())
        .collect();
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
    told
}
