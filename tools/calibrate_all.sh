#!/bin/sh
# Makes every shipped calibration again from the folder of measured data:
#   tools/calibrate_all.sh DATA_DIR [OUT_DIR] [MEDLEY]
# Same data, same bytes. Commands are those that the overlays state.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
data=${1:?usage: tools/calibrate_all.sh DATA_DIR [OUT_DIR] [MEDLEY]}
out=${2:-$root/hwmodels/catalog/calibrations}
medley=${3:-$root/build/medley}
case $out in /*) ;; *) out=$PWD/$out ;; esac
case $medley in /*) ;; *) medley=$PWD/$medley ;; esac
date=2026-11-30
classes=gemm,grouped_gemm,attention_prefill,attention_decode
mkdir -p "$out"
cd "$data"

# fit SLUG DEVICE CLASSES SOURCE PATH...
fit() {
  slug=$1 device=$2 only=$3 source=$4
  shift 4
  "$medley" calibrate --device "$device" --kernels "$@" --only "$only" --holdout \
    --date $date --source "$source" --out "$out/$slug.json"
}

aic='ai-dynamo/aiconfigurator@095f58a, kernels of vLLM'
perf=serving/aiconfigurator/perf-csv
sim='casys-kaist/LLMServingSim@5daddb2'
fit a100-sxm4-80gb A100-SXM4-80GB $classes "$aic 0.14.0" $perf/a100_sxm
fit h100-sxm5-80gb H100-SXM5-80GB $classes "$aic 0.19.0" $perf/h100_sxm
fit h200-sxm-141gb H200-SXM-141GB $classes "$aic 0.22.0" $perf/h200_sxm
fit b200-sxm-180gb B200-SXM-180GB $classes "$aic 0.22.0" $perf/b200_sxm
fit l40s L40S $classes "$aic 0.14.0" $perf/l40s
fit rtx-pro-6000-blackwell-server 'RTX PRO 6000 Blackwell Server' $classes "$aic 0.19.0" \
  $perf/rtx_pro_6000_server
fit arc-pro-b60 'Arc Pro B60' $classes "$aic 0.20.1" $perf/b60
fit rtx-4090 'RTX 4090' $classes "$sim, kernel profile of Llama-3.1-8B on vLLM 0.19.0" \
  serving/LLMServingSim/v2-profiles/RTX4090
fit rtx-a6000 'RTX A6000' gemm,attention_prefill "$sim, kernel profile of Llama-3.1-8B (v0)" \
  serving/LLMServingSim/v0-profiles/A6000/meta-llama
fit mi210 MI210 gemm 'PrincetonUniversity/LLMCompass@2e015fd, measured matrix products' \
  serving/LLMCompass/figure5/ab/real_hardware/matmul_MI210.csv
