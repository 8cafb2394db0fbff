//! Writing init segments.

use super::fragment::{NOT_SYNC, SYNC};
use super::{AUDIO_TRACK, ContainerError, KEY_BOX, VIDEO_TRACK};
use crate::manifest::{Audio, Color, LayerInfo, Manifest};
use mp4_atom::esds::{DecoderConfig, DecoderSpecific, EsDescriptor, SLConfig};
use mp4_atom::{
    Avc1, Avcc, Codec, Colr, Dinf, Dref, DrefEntry, Edts, Elst, ElstEntry, Encode, Esds, Ftyp, Hdlr, Mdhd,
    Mdia, Mehd, Minf, Moov, Mp4a, Mvex, Mvhd, Pasp, Smhd, Stbl, Stco, Stsd, Tkhd, Trak, Trex, Url, Visual,
    Vmhd, Vp09, VpcC,
};

/// `DecoderConfigDescriptor` values for AAC: ISO/IEC 14496-1, tables 5 and 6.
const MPEG4_AUDIO: u8 = 0x40;
const AUDIO_STREAM: u8 = 0x05;

/// The init segment of Base: pictures by this SPS and PPS (units without start
/// code or length), and the manifest's sound if it has some. Of the manifest
/// only the timescale, colours, pixel aspect and sound are read; of the layer
/// its size and delay.
pub fn base_init(
    manifest: &Manifest,
    layer: &LayerInfo,
    sps: &[u8],
    pps: &[u8],
) -> Result<Vec<u8>, ContainerError> {
    let mut avcc = Avcc::new(sps, pps).map_err(ContainerError::in_box("avcC"))?;
    // High profiles state their chroma format and bit depth: 4:2:0, 8 bits.
    if avcc.avc_profile_indication >= 100 {
        avcc.ext = Some(mp4_atom::AvccExt::default());
    }
    let entry = Avc1 {
        visual: visual(layer, "Lamina Base")?,
        avcc,
        colr: Some(colr(manifest.color)),
        pasp: pasp(manifest),
        ..Avc1::default()
    };
    let mut tracks = vec![video_track(manifest, layer, entry.into())?];
    if let Some(audio) = &manifest.audio {
        tracks.push(audio_track(audio));
    }
    let mut bytes = Vec::new();
    ftyp(*b"iso6", &[*b"iso6", *b"mp41", *b"avc1"])
        .encode(&mut bytes)
        .map_err(ContainerError::in_box("ftyp"))?;
    moov(manifest, tracks).encode(&mut bytes).map_err(ContainerError::in_box("moov"))?;
    Ok(bytes)
}

/// The init segment of an enhancement with its grey key frame.
pub fn enhancement_init(
    manifest: &Manifest,
    layer: &LayerInfo,
    key: &[u8],
) -> Result<Vec<u8>, ContainerError> {
    let Color { full_range, primaries, transfer, matrix } = manifest.color;
    let entry = Vp09 {
        visual: visual(layer, "Lamina enhancement")?,
        vpcc: VpcC {
            chroma_subsampling: 1,
            video_full_range_flag: full_range,
            color_primaries: primaries,
            transfer_characteristics: transfer,
            // 0 means RGB, which 4:2:0 cannot be; 2 is unknown.
            matrix_coefficients: if matrix == 0 { 2 } else { matrix },
            ..VpcC::default()
        },
        pasp: pasp(manifest),
        ..Vp09::default()
    };
    let track = video_track(manifest, layer, entry.into())?;
    let mut bytes = Vec::new();
    ftyp(*b"iso6", &[*b"iso6"]).encode(&mut bytes).map_err(ContainerError::in_box("ftyp"))?;
    let moov_at = bytes.len();
    moov(manifest, vec![track]).encode(&mut bytes).map_err(ContainerError::in_box("moov"))?;
    rename_entry(bytes.get_mut(moov_at..).unwrap_or_default());
    let size = u32::try_from(8 + KEY_BOX.len() + key.len())
        .map_err(|_| ContainerError::Inconsistent("a key frame beyond 32 bits"))?;
    bytes.extend_from_slice(&size.to_be_bytes());
    bytes.extend_from_slice(b"uuid");
    bytes.extend_from_slice(&KEY_BOX);
    bytes.extend_from_slice(key);
    Ok(bytes)
}

/// The name of Base's coding after RFC 6381: profile, constraints and level as
/// they stand in the SPS.
pub fn base_codec(sps: &[u8]) -> String {
    match sps {
        [_, profile, constraints, level, ..] => format!("avc1.{profile:02x}{constraints:02x}{level:02x}"),
        _ => "avc1".into(),
    }
}

/// The library writes no sample entry that it does not know.
fn rename_entry(moov: &mut [u8]) {
    if let Some(at) = moov.windows(4).position(|code| code == b"vp09")
        && let Some(code) = moov.get_mut(at..at + 4)
    {
        code.copy_from_slice(b"lenh");
    }
}

fn ftyp(major: [u8; 4], compatible: &[[u8; 4]]) -> Ftyp {
    Ftyp {
        major_brand: major.into(),
        minor_version: 0,
        compatible_brands: compatible.iter().map(Into::into).collect(),
    }
}

fn moov(manifest: &Manifest, trak: Vec<Trak>) -> Moov {
    let trex = trak.iter().map(|track| Trex {
        track_id: track.tkhd.track_id,
        default_sample_description_index: 1,
        default_sample_duration: 0,
        default_sample_size: 0,
        default_sample_flags: if track.tkhd.track_id == AUDIO_TRACK { SYNC } else { NOT_SYNC },
    });
    let mvex = Mvex {
        // A length that is not known yet is left out, not written as 0.
        mehd: (manifest.duration > 0).then_some(Mehd { fragment_duration: manifest.duration }),
        trex: trex.collect(),
    };
    Moov {
        mvhd: Mvhd {
            timescale: manifest.timescale,
            rate: 1.into(),
            volume: 1.into(),
            next_track_id: AUDIO_TRACK + 1,
            ..Mvhd::default()
        },
        mvex: Some(mvex),
        trak,
        ..Moov::default()
    }
}

fn video_track(manifest: &Manifest, layer: &LayerInfo, entry: Codec) -> Result<Trak, ContainerError> {
    let (width, height) = (side(layer.width)?, side(layer.height)?);
    let edit =
        ElstEntry { segment_duration: 0, media_time: Some(u64::from(layer.delay)), media_rate: 1.into() };
    Ok(Trak {
        tkhd: Tkhd {
            track_id: VIDEO_TRACK,
            enabled: true,
            in_movie: true,
            width: width.into(),
            height: height.into(),
            ..Tkhd::default()
        },
        edts: (layer.delay > 0).then(|| Edts { elst: Some(Elst { entries: vec![edit] }) }),
        mdia: media(manifest.timescale, *b"vide", entry),
        ..Trak::default()
    })
}

fn audio_track(audio: &Audio) -> Trak {
    let entry = Mp4a {
        audio: mp4_atom::Audio {
            data_reference_index: 1,
            channel_count: u16::from(audio.channels),
            sample_size: 16,
            // Rates beyond 16 bits stand in the decoder's configuration alone.
            sample_rate: u16::try_from(audio.sample_rate).unwrap_or(0).into(),
        },
        esds: Esds {
            es_desc: EsDescriptor {
                es_id: 2,
                dec_config: DecoderConfig {
                    object_type_indication: MPEG4_AUDIO,
                    stream_type: AUDIO_STREAM,
                    dec_specific: Some(DecoderSpecific {
                        profile: 0,
                        freq_index: 0,
                        chan_conf: 0,
                        raw: audio.config.clone(),
                    }),
                    ..DecoderConfig::default()
                },
                sl_config: SLConfig::default(),
                ..EsDescriptor::default()
            },
        },
        btrt: None,
        taic: None,
    };
    Trak {
        tkhd: Tkhd {
            track_id: AUDIO_TRACK,
            enabled: true,
            in_movie: true,
            volume: 1.into(),
            ..Tkhd::default()
        },
        mdia: media(audio.sample_rate, *b"soun", entry.into()),
        ..Trak::default()
    }
}

fn media(timescale: u32, handler: [u8; 4], entry: Codec) -> Mdia {
    let sound = handler == *b"soun";
    Mdia {
        mdhd: Mdhd { timescale, language: "und".into(), ..Mdhd::default() },
        hdlr: Hdlr { handler: handler.into(), name: "Lamina".into() },
        minf: Minf {
            vmhd: (!sound).then(Vmhd::default),
            smhd: sound.then(Smhd::default),
            // One entry without a location: the media are in this file.
            dinf: Dinf { dref: Dref { entries: vec![DrefEntry::Url(Url::default())] } },
            stbl: Stbl { stsd: Stsd { codecs: vec![entry] }, stco: Some(Stco::default()), ..Stbl::default() },
            ..Minf::default()
        },
    }
}

fn visual(layer: &LayerInfo, compressor: &str) -> Result<Visual, ContainerError> {
    Ok(Visual {
        data_reference_index: 1,
        width: side(layer.width)?,
        height: side(layer.height)?,
        compressor: compressor.into(),
        ..Visual::default()
    })
}

fn colr(color: Color) -> Colr {
    Colr::Nclx {
        colour_primaries: color.primaries.into(),
        transfer_characteristics: color.transfer.into(),
        matrix_coefficients: color.matrix.into(),
        full_range_flag: color.full_range,
    }
}

fn pasp(manifest: &Manifest) -> Option<Pasp> {
    let aspect = manifest.pixel_aspect;
    (aspect.num != aspect.den).then_some(Pasp { h_spacing: aspect.num, v_spacing: aspect.den })
}

fn side(pixels: u32) -> Result<u16, ContainerError> {
    u16::try_from(pixels).map_err(|_| ContainerError::Inconsistent("a picture beyond 65535 pixels"))
}
