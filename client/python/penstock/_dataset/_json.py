"""JSON: lines of files, and documents in elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Optional

from penstock import _json
from penstock._dataset._chain import of_stages
from penstock._dataset._reading import compression, damage_policy, reading_stages
from penstock._spec._stage import Trait, declare

if TYPE_CHECKING:
    from penstock._dataset import Dataset

declare("json_lines", Trait.READS_PATH, Trait.GIVES_NO_PATHS)


class Json:
    """Methods of Dataset for JSON."""

    @staticmethod
    def json_lines(
        filenames: Any,
        features: Optional[Dict[str, Any]] = None,
        compression_type: Optional[str] = None,
        num_parallel_reads: Optional[int] = None,
        name: Optional[str] = None,
        *,
        errors: str = "strict",
        on_damage: str = "fail",
        max_skipped: Optional[int] = None,
        max_skipped_fraction: Optional[float] = None,
    ) -> Dataset:
        """The documents of JSON lines files, one on each line. Not in tf.data.

        Lines of nothing but spaces, tabs and carriage returns are left out. Files are read in the order of the list, those of one glob in the byte order of
        their names.

        Args:
          filenames: a path, a glob, a list of them, or a dataset of paths (list_files).
          features: what is decoded of each document, as penstock.decode_json takes it: a dict of it is the element. None: each element is a line, one
            byte string, for decode_json. `global_shuffle` stands directly behind the source, in front of decode_json.
          compression_type: "NONE", "GZIP", "ZLIB" or "ZSTD"; by default what all of filenames end in: .gz or .zst. Of a dataset of paths it is "NONE" by
            default.
          num_parallel_reads: the number of files whose lines come by turns, one of each; None or AUTOTUNE: one file after another.
          errors: "strict": bytes that are not UTF-8, and lone surrogates, are an error; "replace": they become U+FFFD.
          on_damage: what a line does that is no JSON document: "fail", "skip_record" or "skip_shard". A document that lacks a feature is no damage but an error
            of its element, which ignore_errors leaves out.
          max_skipped: more damaged lines in a pass are an error.
          max_skipped_fraction: a larger part of all lines is an error.
        """
        fields = [
            ("compression", compression(compression_type)),
            ("damage", damage_policy(on_damage, max_skipped, max_skipped_fraction)),
            ("errors", _json.json_errors(errors)),
        ]
        stages = reading_stages("json_lines", fields, filenames, num_parallel_reads, name)
        if features is None:
            return of_stages(stages, None)
        return of_stages([*stages, _json.json_stage(features, errors)], dict.fromkeys(features))

    def decode_json(self, features: Dict[str, Any], errors: str = "strict", name: Optional[str] = None) -> Dataset:
        """Decodes each element, a JSON document, into a dict. Behind `batch` each row is decoded. Not in tf.data.

        Args: as penstock.decode_json.
        """
        stage = _json.json_stage(features, errors, name)
        return self._like((*self._stages, stage), dict.fromkeys(features), self._count)
